// What ranks of an elastic world have in common: a step that is undone once, and worlds that are lost while
// the ranks connect in them.
#include "runtime/train/shared_state.hpp"

#include <doctest/doctest.h>

#include "runtime/comm/elastic/elastic_world.hpp"
#include "runtime/train/start_elastic.hpp"
#include "tests/unit/train/fake_engine.hpp"
#include "tests/unit/train/trainer_job.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

constexpr std::size_t kStatistic = 2;

float statistic_of(const Engine& engine) {
  std::vector<float> out(1);
  REQUIRE(engine.read_tensor(kStatistic, out).has_value());
  return out[0];
}

void set_statistic(Engine& engine, float value) {
  REQUIRE(engine.write_tensor(kStatistic, std::vector<float>{value}).has_value());
}

// Whoever asks is in another world at once.
class Worlds final : public ElasticWorld {
 public:
  int joined = 0;

 private:
  Result<Joined> regroup(std::uint64_t done, Cause cause) override {
    CHECK(done == kStarted);
    CHECK(cause == Cause::lost);
    ++joined;
    return Joined{};
  }
  bool is_asked() const override { return false; }
  bool is_lost() const override { return false; }
  int generation() const override { return joined; }
  bool has_world() const override { return true; }
  void set_job(const std::string& /*checksum*/) override {}
  Result<void> part(std::uint64_t /*done*/) override { return {}; }
};

}  // namespace

TEST_CASE("statistics of a step that is lost are those before it, until others are taken from another rank") {
  FakeEngine engine(small_shape, 8);
  SharedState state(engine);
  set_statistic(engine, 1);
  REQUIRE(state.begin_step(SharedState::Attempt::first).has_value());
  set_statistic(engine, 2);
  REQUIRE(state.undo_step().has_value());
  CHECK(statistic_of(engine) == 1);
  set_statistic(engine, 3);  // as it was where the step was complete
  REQUIRE(state.undo_step().has_value());
  CHECK(statistic_of(engine) == 3);
}

TEST_CASE("where devices lose a rank while they connect, the ranks go on in another world") {
  Job job;
  job.spec.epochs = 1;
  on_ranks(1, [&](ThreadRank& comm) {
    Worlds worlds;
    comm.elastic_world = &worlds;
    FakeEngine engine(small_shape, job.spec.batch);
    Reporter reporter(ControlChannel::open("", 0), 99, {});
    GradientExchange gradients = *GradientExchange::make(job.spec, engine, comm, 4);
    int losses = 2;
    gradients.set_connect_devices([&]() -> Result<void> {
      return losses-- > 0 ? Result<void>(fail(ErrorKind::lost, "a rank is lost")) : Result<void>();
    });
    Trainer trainer({.spec = job.spec,
                     .engine = engine,
                     .comm = comm,
                     .gradients = gradients,
                     .data = job.data,
                     .reporter = reporter,
                     .checkpoints = nullptr,
                     .local_requests = [] { return Requests{}; },
                     .entered = ElasticWorld::Joined{}},
                    Position{});
    CHECK(*trainer.run() == Ending::finished);
    CHECK(worlds.joined == 2);
  });
}
