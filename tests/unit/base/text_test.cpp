#include <doctest/doctest.h>

#include "src/base/environment.hpp"
#include "src/base/json.hpp"
#include "src/base/quote.hpp"
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
