#include "src/plan/secret_values.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"

using namespace dlrun;
using plan::SecretValues;

namespace {
SecretValues values_of(const plan::Plan& plan) {
  SecretValues out;
  out.add(plan);
  return out;
}
}  // namespace

TEST_CASE("a text of others is shown without the values of secrets") {
  plan::Plan job;
  job.environment = {{"HF_TOKEN", "hf_12345"}, {"LICENSE", "lic-777"}, {"OPEN", "all-may-see"}};
  job.environment_rules.secrets = {"LICEN*"};
  const SecretValues values = values_of(job);
  CHECK(values.hidden(std::string("got hf_12345, hf_12345 and lic-777 all-may-see")) ==
        "got (secret, not shown), (secret, not shown) and (secret, not shown) all-may-see");
  CHECK(values.hidden(std::vector<std::string>{"a", "hf_12345"}) ==
        std::vector<std::string>{"a", "(secret, not shown)"});
  const Json json{{"list", {"hf_12345", 7}}, {"inner", {{"text", "x hf_12345"}}}};
  CHECK(values.hidden(json) ==
        Json{{"list", {"(secret, not shown)", 7}}, {"inner", {{"text", "x (secret, not shown)"}}}});
}

TEST_CASE("values in commands and setup lines are secrets too") {
  plan::Plan job;
  job.prolog.setup = {"export A_TOKEN='from setup'; true", "export B_TOKEN=$(cat /b)"};
  job.ranks.resize(2);
  for (plan::RankPlan& rank : job.ranks) rank.argv = {"train", "--api-key", "from-flag", "--token=from-word"};
  CHECK(values_of(job).all() == std::vector<std::string>{"from setup", "from-flag", "from-word"});
}

TEST_CASE("what is too short or no secret is left alone") {
  Environment environment;
  environment.set("A_TOKEN", "abc");
  environment.set("MAX_TOKENS", "4096");
  environment.set("TOKENIZERS_PARALLELISM", "false");
  environment.set("B_TOKEN", "");
  environment.set("C_TOKEN", "none");
  SecretValues values;
  values.add(environment, {});
  CHECK(values.all().empty());
  CHECK(values.hidden(std::string("abc 4096 false")) == "abc 4096 false");
}

TEST_CASE("a longer value is hidden before one that is part of it, and a key line by line") {
  SecretValues values;
  values.add("secret");
  values.add("my-secret-word");
  CHECK(values.hidden(std::string("my-secret-word")) == "(secret, not shown)");
  SecretValues key;
  key.add("-----BEGIN KEY-----\nAAAABBBB\n-----END KEY-----\n");
  CHECK(key.hidden(std::string("x AAAABBBB")) == "x (secret, not shown)");
}
