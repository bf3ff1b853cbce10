// The start of an elastic training in which ranks are lost: who starts once more, and who is late.
#include "runtime/train/start_elastic.hpp"

#include <deque>
#include <vector>

#include <doctest/doctest.h>

#include "tests/unit/train/trainer_job.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

// A rank whose calls fail as the test has it, in the worlds that the test has.
class Starter final : public ElasticWorld {
 public:
  std::deque<Result<void>> starts, barriers;  // behind them, all succeed
  std::deque<Joined> worlds;
  int started = 0, regrouped = 0;
  std::uint64_t done = 0;  // by this rank

  auto begin() {
    return start_elastic(*this, {.start =
                                     [this] {
                                       ++started;
                                       return next(starts);
                                     },
                                 .barrier = [this] { return next(barriers); },
                                 .regrouped = [this] { ++regrouped; }});
  }

 private:
  static Result<void> next(std::deque<Result<void>>& results) {
    if (results.empty()) return {};
    const Result<void> out = results.front();
    results.pop_front();
    return out;
  }
  Result<Joined> regroup(std::uint64_t told, Cause cause) override {
    CHECK(told == done);
    CHECK(cause == Cause::lost);
    const Joined out = worlds.front();
    worlds.pop_front();
    return out;
  }
  bool is_asked() const override { return false; }
  bool is_lost() const override { return false; }
  int generation() const override { return 0; }
  bool has_world() const override { return true; }
  void set_job(const std::string& /*checksum*/) override {}
  Result<void> part(std::uint64_t /*done*/) override { return {}; }
};

Result<void> lost() {
  return fail(ErrorKind::lost, "rank 1 is lost");
}

}  // namespace

TEST_CASE("ranks that lose nobody start once") {
  Starter rank;
  CHECK_FALSE(rank.begin()->has_value());
  CHECK(rank.started == 1);
  CHECK(rank.regrouped == 0);
}

TEST_CASE("ranks that lose others while they start do so again with those that are left") {
  Starter rank;
  rank.starts = {lost()};
  rank.barriers = {lost()};
  rank.worlds = {{}, {}};
  CHECK_FALSE(rank.begin()->has_value());
  CHECK(rank.started == 3);
  CHECK(rank.regrouped == 2);
}

TEST_CASE("a rank that loses another when some have started trains with these") {
  Starter rank;
  rank.barriers = {lost()};
  rank.worlds = {{.source = 1, .behind = true}};
  const auto entered = rank.begin();
  REQUIRE(entered->has_value());
  CHECK((*entered)->source == 1);
  CHECK(rank.started == 1);
}

TEST_CASE("another error, and a run that goes on without this rank, end the start") {
  Starter rank;
  rank.starts = {fail(ErrorKind::input, "rank 1 has another job")};
  CHECK(rank.begin().error().what == "rank 1 has another job");
  rank.starts = {lost()};
  rank.worlds = {{.member = false}};
  CHECK(rank.begin().error().what == "the run goes on without this rank");
}

TEST_CASE("a rank that loses another while it connects to those that have started regroups, and trains") {
  Starter rank;
  rank.done = kStarted;
  rank.worlds = {{}};
  int connected = 0;
  test::Job job;
  job.elastic_world = &rank;
  job.entered = ElasticWorld::Joined{};
  job.connect_devices = [&] { return ++connected == 1 ? lost() : Result<void>{}; };
  const auto out = job.run();
  CHECK(out[0].ending.value() == Ending::finished);
  CHECK(connected == 2);
  CHECK(rank.worlds.empty());
}
