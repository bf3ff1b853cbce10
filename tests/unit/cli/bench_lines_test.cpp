// The table of a bench on a terminal.
#include "src/cli/bench_lines.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using bench::results::Column;
using bench::results::Mark;
using bench::results::Table;

namespace {

std::string plain(std::string_view text, cli::Tint) {
  return std::string(text);
}

const Table kTable{.title = "t\x1b[2J",
                   .columns = {{"nodes"}, {"data", Column::Kind::text}, {"images/s"}, {"ranks"}},
                   .essential = 3,
                   .rows = {{{"1"}, {"real"}, {"138.6 ± 0.5"}, {"1"}},
                            {{"16"}, {"synthetic"}, {"failed", Mark::failed}, {"-"}}},
                   .notes = {"nodes=16: failed: a\nb"}};

}  // namespace

TEST_CASE("columns are aligned by what a terminal shows, and text cannot move its cursor") {
  const auto lines = cli::table_lines(kTable, 80, plain);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0] == "t\\x1b[2J");
  CHECK(lines[1] == "nodes  data          images/s  ranks");
  CHECK(lines[2] == "    1  real       138.6 ± 0.5      1");
  CHECK(lines[3] == "   16  synthetic       failed      -");
  CHECK(lines[4] == "nodes=16: failed: a\\nb");
}

TEST_CASE("a narrow terminal loses the last columns and says so, but never the essential ones") {
  const auto lines = cli::table_lines(kTable, 30, plain);
  CHECK(lines[1] == "nodes  data          images/s");
  CHECK(lines[4] == "not shown, as the terminal is too narrow: ranks");
  CHECK(cli::table_lines(kTable, 1, plain)[1] == lines[1]);
}

TEST_CASE("what failed is red, and colours take no width") {
  const auto paint = [](std::string_view text, cli::Tint tint) {
    return tint == cli::Tint::red ? "\033[31m" + std::string(text) + "\033[0m" : std::string(text);
  };
  CHECK(cli::table_lines(kTable, 80, paint)[3] == "   16  synthetic       \033[31mfailed\033[0m      -");
}
