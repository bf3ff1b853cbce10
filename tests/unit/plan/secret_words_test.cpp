#include "src/plan/secret_words.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/secrets.hpp"

using namespace dlrun;
using namespace dlrun::plan;

namespace {

const std::string kGone = std::string(kHidden);

std::string shown_line(const std::string& text) {
  return without_secret_values(text, {});
}
Argv words(const Argv& argv) {
  return without_secret_values(argv, {"licen*"});
}

}  // namespace

TEST_CASE("in a command, a secret's value is hidden however it is given") {
  CHECK(words({"a", "--api-token=abc"}) == Argv{"a", "--api-token=" + kGone});
  CHECK(words({"a", "--api-token", "a b c", "--next"}) == Argv{"a", "--api-token", kGone, "--next"});
  CHECK(words({"a", "-password", "abc"}) == Argv{"a", "-password", kGone});
  CHECK(words({"env", "MY_SECRET=a b; c", "a"}) == Argv{"env", "MY_SECRET=" + kGone, "a"});
  CHECK(words({"a", "--wandb.api-key", "abc"}) == Argv{"a", "--wandb.api-key", kGone});
  CHECK(words({"a", "--license", "abc"}) == Argv{"a", "--license", kGone});  // the job's own pattern
  CHECK(words({"bash", "-c", "export A_TOKEN='x y'; ./a"}) ==
        Argv{"bash", "-c", "export A_TOKEN=" + kGone + "; ./a"});
}

TEST_CASE("what is no secret stays readable") {
  for (const Argv& argv :
       {Argv{"a", "--batch", "64"}, Argv{"a", "--max-tokens", "512"}, Argv{"a", "--max-tokens=512"},
        Argv{"a", "--tokenizer", "bert"}, Argv{"a", "--use-token", "--verbose"}, Argv{"a", "--token"},
        Argv{"a", "x=1", "TOKEN"}, Argv{}, Argv{"a", "--token="}})
    CHECK(words(argv) == argv);
}

TEST_CASE("in a line of shell, words end where the shell ends them") {
  CHECK(shown_line("export MY_TOKEN=abc") == "export MY_TOKEN=" + kGone);
  CHECK(shown_line("A_KEY=1 B_TOKEN='x;y z' C=\"2 3\" run | tee") ==
        "A_KEY=" + kGone + " B_TOKEN=" + kGone + " C=\"2 3\" run | tee");
  CHECK(shown_line("(PASSWORD=a\\ b;echo hi)") == "(PASSWORD=" + kGone + ";echo hi)");
  CHECK(shown_line("login --token \"a b\" --user me") == "login --token " + kGone + " --user me");
  CHECK(shown_line("login --token; echo hi") == "login --token; echo hi");
  CHECK(shown_line("bash -c 'X_SECRET=abc run'") == "bash -c 'X_SECRET=" + kGone + " run'");
  CHECK(shown_line("X_SECRET='never closed") == "X_SECRET=" + kGone);
  CHECK(shown_line("X_SECRET=abc\\") == "X_SECRET=" + kGone);
  CHECK(shown_line("ulimit -l unlimited") == "ulimit -l unlimited");
  CHECK(shown_line("") == "");
}

TEST_CASE("a reference to a secret is none") {
  for (const std::string& text :
       {std::string("export A_TOKEN=$OTHER"), std::string("A_TOKEN=\"${OTHER}\" run"),
        std::string("A_TOKEN=$(cat \"$(ls | head)\") run"), std::string("A_TOKEN=`cat file`"),
        std::string("login --token \"$A_TOKEN\"")})
    CHECK(shown_line(text) == text);
  CHECK(shown_line("A_TOKEN=$'abc'") == "A_TOKEN=" + kGone);
  CHECK(shown_line("A_TOKEN=${X:-abc}") == "A_TOKEN=" + kGone);
}

TEST_CASE("a plan that is shown has none of them, and the plan that runs has all") {
  Plan plan;
  plan.prolog.setup = {"export A_TOKEN=abc"};
  plan.checks = {{"check", "--token", "abc"}};
  RankPlan rank;
  rank.argv = {"a", "--token=abc"};
  plan.ranks.push_back(rank);
  CHECK(to_text(to_json(without_secrets(plan))).find("abc") == std::string::npos);
  CHECK(plan.ranks[0].argv[1] == "--token=abc");
}
