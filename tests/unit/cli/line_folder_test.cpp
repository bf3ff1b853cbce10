#include "src/cli/line_folder.hpp"

#include <random>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::cli;
using job::OutputStream;

namespace {

plan::Plan plan_of(int workers, int ps = 0) {
  plan::Plan out;
  for (int i = 0; i < workers + ps; ++i) {
    plan::RankPlan rank;
    rank.rank = Rank(i);
    rank.role = i < workers ? "worker" : "ps";
    rank.task_index = i < workers ? i : i - workers;
    out.ranks.push_back(rank);
  }
  return out;
}

Ticks at(int ms) {
  return Ticks{} + std::chrono::milliseconds(1000 + ms);
}

struct Fixture {
  plan::Plan plan;
  std::vector<std::string> lines;
  LineFolder folder{[this](const FoldedLine& line) {
    lines.push_back(line.role + " " + task_ranges(line.ranks) + ": " + line.text);
  }};
  explicit Fixture(int workers, int ps = 0) : plan(plan_of(workers, ps)) { folder.expect(plan); }
  void add(int rank, const std::string& text, int ms) {
    folder.add(plan.ranks[static_cast<std::size_t>(rank)], OutputStream::out, text, at(ms));
  }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a line that every rank of the role says comes once, at once") {
  Fixture f(3, 1);
  for (const int rank : {2, 0, 1}) f.add(rank, "hello", 0);
  CHECK(f.lines == Lines{"worker 0-2: hello"});
  CHECK_FALSE(f.folder.due());
}

TEST_CASE("one that some say waits for no longer than the window") {
  Fixture f(4);
  f.add(0, "hello", 0);
  f.add(2, "hello", 30);
  CHECK(f.lines.empty());
  REQUIRE(f.folder.due());
  CHECK(*f.folder.due() <= at(100));
  f.folder.flush_due(at(100));
  CHECK(f.lines == Lines{"worker 0,2: hello"});
  f.add(3, "hello", 110);
  f.folder.flush();
  CHECK(f.lines.back() == "worker 3: hello");
}

TEST_CASE("equal lines of other roles and other streams are other lines") {
  Fixture f(1, 1);
  f.folder.add(f.plan.ranks[0], OutputStream::out, "a", at(0));
  f.folder.add(f.plan.ranks[1], OutputStream::out, "a", at(0));
  f.folder.add(f.plan.ranks[0], OutputStream::err, "a", at(0));
  CHECK(f.lines == Lines{"worker 0: a", "ps 0: a", "worker 0: a"});
}

TEST_CASE("a rank that says the same twice is shown twice") {
  Fixture f(2);
  for (const int rank : {0, 0, 1, 1}) f.add(rank, "again", 0);
  CHECK(f.lines == Lines{"worker 0-1: again", "worker 0-1: again"});
}

TEST_CASE("no rank's lines change places for the sake of folding") {
  Fixture f(3);
  f.add(0, "b", 0);
  f.add(1, "a", 0);
  f.add(1, "b", 0);  // joining the first b would put it before its a
  f.folder.flush();
  CHECK(f.lines == Lines{"worker 0: b", "worker 1: a", "worker 1: b"});
}

TEST_CASE("whatever the lines: none is lost, none is doubled, each rank's keep their order") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const int ranks = 1 + static_cast<int>(random() % 6);
    plan::Plan plan = plan_of(ranks);
    std::vector<Lines> said(static_cast<std::size_t>(ranks)), shown = said;
    LineFolder folder([&](const FoldedLine& line) {
      for (const plan::RankPlan* rank : line.ranks)
        shown[static_cast<std::size_t>(rank->rank.get())].push_back(line.text);
    });
    folder.expect(plan);
    for (int i = 0, now = 0; i < 400; ++i, now += static_cast<int>(random() % 40)) {
      const auto rank = random() % static_cast<unsigned>(ranks);
      said[rank].push_back(std::string(1, static_cast<char>('a' + random() % 4)));
      folder.add(plan.ranks[rank], OutputStream::out, said[rank].back(), at(now));
      if (random() % 5 == 0) folder.flush_due(at(now));
      REQUIRE((!folder.due() || *folder.due() > at(now)));
    }
    folder.flush();
    CHECK(shown == said);
  }
}

TEST_CASE("what waits is bounded") {
  Fixture f(2);
  for (int i = 0; i < 5000; ++i) f.add(0, std::to_string(i), 0);
  CHECK(f.lines.size() >= 3000);
  f.add(0, std::string(std::size_t{4} << 20, 'x'), 0);
  CHECK(f.lines.size() == 5001);
}
