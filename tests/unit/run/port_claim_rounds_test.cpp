#include "src/run/port_claim_rounds.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::job;
using Next = PortClaimRounds::Next;

TEST_CASE("a job without ports asks nobody") {
  PortClaimRounds rounds;
  rounds.ask({{}, {}});
  CHECK(rounds.asked().empty());
}

TEST_CASE("ranks start once every node that has ports has them") {
  PortClaimRounds rounds;
  rounds.ask({{{2220, Rank(0)}}, {}, {{2220, Rank(1)}}});
  CHECK(rounds.asked() == std::set<int>{0, 2});
  CHECK(rounds.answered(NodeIndex(2)) == Next::wait);
  CHECK(rounds.answered(NodeIndex(0)) == Next::start);
}

TEST_CASE("a port that is taken on one node makes a new plan for all, and what is known stays known") {
  PortClaimRounds rounds;
  const std::vector<std::vector<plan::PortUse>> ports{{{2220, Rank(0)}}, {{2220, Rank(1)}}};
  rounds.ask(ports);
  rounds.taken("n2", 2220, "process 7 (nc)");
  CHECK(rounds.answered(NodeIndex(1)) == Next::wait);
  CHECK(rounds.answered(NodeIndex(0)) == Next::plan_anew);
  rounds.ask(ports);
  rounds.taken("n2", 2221, "process 8 (nc)");
  CHECK(rounds.answered(NodeIndex(0)) == Next::wait);
  CHECK(rounds.answered(NodeIndex(1)) == Next::plan_anew);
  CHECK(rounds.all_taken().at("n2").size() == 2);
  rounds.ask(ports);
  CHECK(rounds.answered(NodeIndex(0)) == Next::wait);
  CHECK(rounds.answered(NodeIndex(1)) == Next::start);
}

TEST_CASE("somebody who takes ports as fast as they are planned ends it") {
  PortClaimRounds rounds;
  Next next = Next::wait;
  int count = 0;
  do {
    rounds.ask({{{2220, Rank(0)}}});
    rounds.taken("n1", 2220 + count++, "process 7 (nc)");
    next = rounds.answered(NodeIndex(0));
  } while (next == Next::plan_anew);
  CHECK(next == Next::give_up);
  CHECK(count == 100);
}
