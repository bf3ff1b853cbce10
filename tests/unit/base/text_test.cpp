#include <doctest/doctest.h>

#include "src/base/environment.hpp"
#include "src/base/json.hpp"
#include "src/base/quote.hpp"
#include "src/base/split_words.hpp"
#include "src/base/strings.hpp"

using namespace dlrun;

TEST_CASE("words are quoted for bash only where they must be") {
  CHECK(shell_quote("python3") == "python3");
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("64(x2)") == "'64(x2)'");
  CHECK(shell_quote("it's $HOME") == "'it'\\''s $HOME'");
  CHECK(is_shell_identifier("OMP_NUM_THREADS"));
  CHECK_FALSE(is_shell_identifier("BASH_FUNC_module%%"));
  CHECK_FALSE(is_shell_identifier("9A"));
}

TEST_CASE("the nearest name is near, or there is none") {
  const std::vector<std::string> names{"batch", "epochs", "optimizer"};
  CHECK(nearest("bacth", names) == "batch");
  CHECK(nearest("optimiser", names) == "optimizer");
  CHECK(nearest("zebra", names).empty());
  CHECK(nearest(std::string(1 << 20, 'a'), names).empty());
}

TEST_CASE("the environment is a value: the first of equal names wins, as getenv has it") {
  auto env = Environment::from_entries({"A=1", "A=2", "EMPTY=", "broken", "=x", "PMI_FD=3", "PMI_RANK=0"});
  CHECK(env.get("A") == "1");
  CHECK(env.find("EMPTY") == "");
  CHECK_FALSE(env.find("broken").has_value());
  env.unset_prefix("PMI_");
  CHECK(env.entries() == std::vector<std::string>{"A=1", "EMPTY="});
}

TEST_CASE("JSON errors name line and column; bytes that are not UTF-8 do not throw") {
  CHECK(parse_json("{\n \"a\": }", "plan.json").error().text().starts_with("plan.json:2:"));
  CHECK(to_text(Json{{"a", "\xff"}}) == "{\"a\":\"\xef\xbf\xbd\"}");
}

TEST_CASE("a name of another tool has ours, whatever its case") {
  constexpr OtherName others[] = {{"ntasks-per-node", "tasks-per-node"}, {"conv2d", "convolution"}};
  CHECK(our_name("ntasks_per_node", others) == "tasks-per-node");
  CHECK(our_name("Conv2d", others) == "convolution");
  CHECK(our_name("conv3d", others).empty());
}

TEST_CASE("a command that is one text has the words that a shell would make of it") {
  const auto words = [](std::string_view text) { return split_words(text).value(); };
  CHECK(words("python train.py  --lr 0.1\t-v") ==
        std::vector<std::string>{"python", "train.py", "--lr", "0.1", "-v"});
  CHECK(words("echo 'a  $b' \"c'd\" e\\ f '' \"\\$x \\n\"") ==
        std::vector<std::string>{"echo", "a  $$b", "c'd", "e f", "", "$$x \\n"});
  CHECK(words("a $HOME/b ~/c \"${D}e\" x$F") ==
        std::vector<std::string>{"a", "$HOME/b", "~/c", "${D}e", "x$F"});
  CHECK(words("a#b x~y k=v,w 100% ./a!") == std::vector<std::string>{"a#b", "x~y", "k=v,w", "100%", "./a!"});
  CHECK(words("a $$HOME \"$$\"") == std::vector<std::string>{"a", "$$HOME", "$$"});
  CHECK(words("a b\n") == std::vector<std::string>{"a", "b"});  // of YAML's > and |
  CHECK(words("  ").empty());
}

TEST_CASE("what only a shell can do is refused by name") {
  const auto refusal = [](std::string_view text) { return split_words(text).error().text(); };
  for (const char* text : {"a $1", "a \"$(b)\"", "a ${b:-c}", "a $", "a `b`", "a | b", "a && b", "a; b",
                           "a > b", "ls *.txt", "(a)", "a ~b/c", "a # b", "a {b,c}", "a[1]"}) {
    CAPTURE(text);
    CHECK(refusal(text).find(
              " needs a shell, and no shell reads the command\n  hint: put it in single quotes, or "
              "write the command as [bash, -c, 'TEXT']") != std::string::npos);
  }
  CHECK(refusal("a\nb").starts_with("a line break needs a shell"));
  CHECK(refusal("a 'b") == "a ' is not closed");
  CHECK(refusal("a \\") == "the command ends with a backslash");
  CHECK(refusal("OMP_NUM_THREADS=4 python x.py") ==
        "'OMP_NUM_THREADS=4' sets a variable, which needs a shell, and no shell reads the command\n  hint: "
        "set it in environment.set");
}
