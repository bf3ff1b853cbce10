// What `dlrun diff` shows to people.
#include "src/cli/diff_lines.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {

std::vector<std::string> lines_of(const report::RunDiff& diff) {
  const report::DiffRun a{.path = "/runs/a", .spec = {}, .plan = {}, .record = {{"exit_code", 0}}};
  const report::DiffRun b{.path = "/runs/b", .spec = {}, .plan = {}, .record = {}};
  return cli::diff_lines(diff, a, b);
}

}  // namespace

TEST_CASE("short values stand beside each other, long ones below, and many are counted") {
  report::RunDiff diff;
  diff.differences = {{"times", "seconds per step", 0.01, 0.02, 2.0},
                      {"environment", "PATH", std::string(40, 'x'), std::string(40, 'y')},
                      {"environment", "NEW", nullptr, "1\x1b[2J"}};
  for (int i = 0; i < 25; ++i)
    diff.differences.push_back({"libraries", fmt::format("lib{}", i), nullptr, "x"});
  diff.unknown = {{"modules", true, false}};
  const auto lines = lines_of(diff);
  CHECK(lines[0] == "a /runs/a: exit code 0");
  CHECK(lines[1] == "b /runs/b: without a record");
  CHECK(lines[3] == "  seconds per step: 0.01 -> 0.02 (2.00 x)");
  CHECK(lines[5] == "  PATH:");
  CHECK(lines[6] == "    a " + std::string(40, 'x'));
  CHECK(lines[8].find('\x1b') == std::string::npos);
  CHECK(lines[lines.size() - 2] == "  and 5 more: --json has them all");
  CHECK(lines.back() == "not known of a: modules");
}

TEST_CASE("no difference is said") {
  CHECK(lines_of({}).back() == "no difference");
}
