#include "src/cli/unfinished_lines.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::cli;
using job::OutputStream;

namespace {

Ticks after_seconds(int seconds) {
  return Ticks() + std::chrono::seconds(seconds);
}

plan::RankPlan rank_of(int number) {
  plan::RankPlan rank;
  rank.rank = Rank(number);
  return rank;
}

std::vector<std::string> texts(const std::vector<UnfinishedLines::Line>& lines) {
  std::vector<std::string> out;
  for (const UnfinishedLines::Line& line : lines) out.push_back(line.text);
  return out;
}

}  // namespace

TEST_CASE("a bar that is drawn all the time is shown every ten seconds as it stands") {
  const plan::RankPlan rank = rank_of(0);
  UnfinishedLines lines;
  CHECK(!lines.due());
  std::vector<std::string> shown;
  for (int second = 0; second <= 25; ++second) {
    lines.set(rank, OutputStream::err, std::to_string(second) + " %", after_seconds(second));
    for (const std::string& text : texts(lines.take_due(after_seconds(second)))) shown.push_back(text);
  }
  CHECK(shown == std::vector<std::string>{"10 %", "20 %"});
}

TEST_CASE("a prompt is shown once, and a line that has its end no more") {
  const plan::RankPlan first = rank_of(0), second = rank_of(1);
  UnfinishedLines lines;
  lines.set(first, OutputStream::out, "Go on? ", after_seconds(0));
  lines.set(first, OutputStream::out, "Go on? ", after_seconds(5));
  lines.set(second, OutputStream::out, "loading ", after_seconds(3));
  CHECK(lines.due() == after_seconds(10));
  CHECK(texts(lines.take_due(after_seconds(10))) == std::vector<std::string>{"Go on? "});
  CHECK(lines.due() == after_seconds(13));
  lines.ended(second, OutputStream::out);
  CHECK(!lines.due());
  lines.set(first, OutputStream::out, "Go on? ", after_seconds(15));
  CHECK(!lines.due());
}
