#include "src/run/rank_output.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::job;

namespace {

const plan::SecretValues kNoSecrets;

void print(RankOutput& output, int rank, std::string text) {
  (void)output.take({.rank = Rank(rank), .text = std::move(text)});
}

std::size_t bytes_of(const std::vector<std::string>& lines) {
  std::size_t out = 0;
  for (const std::string& line : lines) out += line.size() + 1;
  return out;
}

}  // namespace

TEST_CASE("the last twelve lines of a rank are kept, each cut") {
  RankOutput output(2, kNoSecrets);
  for (int line = 0; line < 20; ++line) print(output, 0, fmt::format("{}\n", line));
  print(output, 0, "\n" + std::string(1000, 'x') + "\n");
  const auto lines = output.last_lines(Rank(0));
  REQUIRE(lines.size() == 12);
  CHECK(lines.front() == "10");
  CHECK(lines[9] == "19");
  CHECK(lines[10].empty());
  CHECK(lines[11] == std::string(400, 'x'));
  CHECK(output.last_lines(Rank(1)).empty());
}

TEST_CASE("of very many ranks less is kept, the newest lines") {
  constexpr std::size_t kRanks = 200'000;
  RankOutput output(kRanks, kNoSecrets);
  for (int line = 0; line < 20; ++line) print(output, 7, fmt::format("{:0200}\n", line));
  const auto lines = output.last_lines(Rank(7));
  CHECK(bytes_of(lines) <= 800);
  REQUIRE(lines.size() == 3);
  CHECK(lines.back() == fmt::format("{:0200}", 19));
}
