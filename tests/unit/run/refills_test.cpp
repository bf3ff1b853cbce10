// When ranks are started again in the places of lost ones, and when no more.
#include "src/run/refills.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::job;
using Chance = Refills::Chance;
using Hosts = std::vector<std::string>;

namespace {

Ticks second(double seconds) {
  return Ticks{std::chrono::hours(1)} + std::chrono::duration_cast<Ticks::duration>(Seconds(seconds));
}

}  // namespace

TEST_CASE("places of one loss are filled together, after a moment") {
  Refills refills(3);
  CHECK_FALSE(refills.waits());
  CHECK(refills.lost("n2", Rank(4), second(0)) == Chance::again);
  CHECK(refills.lost("n2", Rank(5), second(0.1)) == Chance::again);
  CHECK(refills.waits());
  CHECK(refills.due(second(4.9)).empty());
  CHECK(refills.due(second(5)) == Hosts{"n2"});
  CHECK(refills.places("n2") == 2);
  CHECK(refills.begin("n2") == std::vector{Rank(4), Rank(5)});
  CHECK(refills.due(second(50)).empty());
  CHECK_FALSE(refills.waits());
}

TEST_CASE("ranks that are lost again and again wait longer, and in the end are not started again") {
  Refills refills(2);
  CHECK(refills.lost("n2", Rank(1), second(0)) == Chance::again);
  (void)refills.begin("n2");
  refills.joined("n2", second(5));
  CHECK(refills.lost("n2", Rank(8), second(6)) == Chance::again);
  CHECK(refills.due(second(15)).empty());
  CHECK(refills.due(second(16)) == Hosts{"n2"});
  CHECK(refills.begin("n2") == std::vector{Rank(8)});
  refills.joined("n2", second(17));
  CHECK(refills.lost("n2", Rank(9), second(18)) == Chance::none);
  CHECK(refills.due(second(5000)).empty());
  CHECK_FALSE(refills.waits());
  CHECK(refills.lost("n3", Rank(2), second(18)) == Chance::again);  // another host
}

TEST_CASE("a start that fails counts, and its places stay free") {
  Refills refills(1);
  (void)refills.lost("n2", Rank(1), second(0));
  (void)refills.begin("n2");
  CHECK(refills.failed("n2", second(6)) == Chance::none);
  CHECK_FALSE(refills.waits());
}

TEST_CASE("ranks that have lived for long begin a new row") {
  Refills refills(1);
  (void)refills.lost("n2", Rank(1), second(0));
  (void)refills.begin("n2");
  refills.joined("n2", second(5));
  CHECK(refills.lost("n2", Rank(8), second(5 + 600)) == Chance::again);
  CHECK(refills.due(second(5 + 605)) == Hosts{"n2"});
}

TEST_CASE("where nobody is to be started again, nobody waits") {
  Refills refills(0);
  CHECK(refills.lost("n2", Rank(1), second(0)) == Chance::again);
  CHECK_FALSE(refills.waits());
  CHECK(refills.failed("n2", second(1)) == Chance::again);
  refills.joined("n2", second(1));
}
