// Messages between the GPUs of the stages of a pipeline, with a fake NCCL whose ranks are threads and whose
// device memory is the host's: in which order a stage sends and receives, and what becomes of gradients that
// two stages have.
#include "runtime/cuda/stage_peers.hpp"

#include <atomic>

#include <doctest/doctest.h>

#include "runtime/comm/nccl/pipeline.hpp"
#include "runtime/train/pipeline_schedule.hpp"
#include "tests/unit/comm/fake_device.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {
namespace {

using Floats = std::vector<float>;

// A stage as an engine would use it; it adds 1 to values, and 100 to gradients.
class Stage {
 public:
  Stage(
      Communicator& world, std::vector<Bucket> tied = {},
      std::function<Result<void>(float*, void*)> sum_waiting = [](float*, void*) { return Result<void>(); })
      : rank_{world.rank(), world.size()} {
    auto pipeline = make_nccl_pipeline(world, world, FAKE_NCCL);
    REQUIRE(pipeline);
    auto peers = StagePeers::connect({.pipeline = std::move(pipeline->pipeline),
                                      .turns = turns_,
                                      .calls = std::make_shared<dlrun::test::FakeDevice>(),
                                      .tied = std::move(tied),
                                      .sum_waiting = std::move(sum_waiting),
                                      .keep = [this](Result<void> done) {
                                        if (!done) failure = done.error();
                                        return done ? 0 : 1;
                                      }});
    REQUIRE(peers);
    peers_ = std::move(*peers);
    calls = peers_->calls();
    dlrun::test::nccl_log();
  }

  void forward(int batch) {
    if (rank_.is_first())
      values_ = {static_cast<float>(batch), 0};
    else
      calls.receive_values(calls.context, values_.data(), 8, nullptr);
    values_[1] += 1;
    if (!rank_.is_last()) calls.send_values(calls.context, values_.data(), 8, nullptr);
  }
  // The gradient of a batch has its number, too.
  void backward(int batch) {
    if (rank_.is_last())
      gradients_ = {static_cast<float>(batch), 0};
    else
      calls.receive_gradients(calls.context, gradients_.data(), 8, nullptr);
    right = right && gradients_[0] == static_cast<float>(batch);
    gradients_[1] += 100;
    if (!rank_.is_first()) calls.send_gradients(calls.context, gradients_.data(), 8, nullptr);
  }
  void update(int batches) {
    turns_.begin_update(rank_.is_first() ? 0 : batches);
    for (const PipelineStep& step : one_forward_one_backward(rank_, batches))
      step.pass == PipelineStep::Pass::forward ? forward(step.micro_batch) : backward(step.micro_batch);
  }

  StageRank rank_;
  GradientTurns turns_;
  std::unique_ptr<StagePeers> peers_;
  DlrunCudaStageCalls calls{};
  Floats values_ = {0, 0}, gradients_ = {0, 0};
  bool right = true;
  std::optional<Error> failure;
};

}  // namespace

TEST_CASE("values and gradients of each batch pass all stages") {
  for (const int stages : {2, 3, 4})
    for (const int batches : {1, 2, 5}) {
      std::atomic<int> right{0};
      dlrun::test::on_ranks(stages, [&](Communicator& world) {
        Stage stage(world);
        for (int update = 0; update < 3; ++update) stage.update(batches);
        const bool well = stage.right && stage.values_ == Floats{static_cast<float>(batches - 1),
                                                                 static_cast<float>(world.rank() + 1)};
        const auto passed = static_cast<float>(stages - world.rank());
        if (well && !stage.failure && stage.gradients_[1] == 100 * passed) ++right;
        REQUIRE(world.barrier());
      });
      CHECK(right == stages);
    }
}

// The stage before sends the next values before it takes the gradient: both would wait for each other.
TEST_CASE("a gradient waits for the next values of the update, and an evaluation sends none") {
  dlrun::test::on_ranks(2, [](Communicator& world) {
    Stage stage(world);
    stage.update(3);
    const std::string log = dlrun::test::nccl_log();
    if (world.rank() == 1)
      CHECK(log ==
            "receive 8 from 0, receive 8 from 0, send 8 to 0, receive 8 from 0, send 8 to 0, send 8 to 0");
    else
      CHECK(log ==
            "send 8 to 1, send 8 to 1, receive 8 from 1, send 8 to 1, receive 8 from 1, receive 8 from 1");
    stage.forward(0);
    CHECK(dlrun::test::nccl_log() == (world.rank() == 1 ? "receive 8 from 0" : "send 8 to 1"));
    REQUIRE(world.barrier());
  });
}

// Once connected, no call waits on the host for a stage that is not there yet.
TEST_CASE("stages connect to all whom they have messages for before they train") {
  dlrun::test::on_ranks(4, [](Communicator& world) {
    auto pipeline = make_nccl_pipeline(world, world, FAKE_NCCL);
    REQUIRE(pipeline);
    GradientTurns turns;
    const bool is_end = world.rank() == 0 || world.rank() == 3;
    dlrun::test::nccl_log();
    const auto peers =
        StagePeers::connect({.pipeline = std::move(pipeline->pipeline),
                             .turns = turns,
                             .calls = std::make_shared<dlrun::test::FakeDevice>(),
                             .tied = is_end ? std::vector<Bucket>{{0, 2}} : std::vector<Bucket>(),
                             .sum_waiting = {},
                             .keep = {}});
    REQUIRE(peers);
    const std::string log = dlrun::test::nccl_log();
    for (const int other : world.rank() == 0   ? std::vector{1, 3}
                           : world.rank() == 3 ? std::vector{2, 0}
                                               : std::vector{world.rank() - 1, world.rank() + 1}) {
      CAPTURE(log);
      CHECK(log.find(fmt::format("to {}", other)) != std::string::npos);
      CHECK(log.find(fmt::format("from {}", other)) != std::string::npos);
    }
    REQUIRE(world.barrier());
  });
}

TEST_CASE("gradients that the first and the last stage have are added, summed over samples once, and equal") {
  for (const int stages : {2, 3}) {
    std::atomic<int> right{0};
    dlrun::test::on_ranks(stages, [&](Communicator& world) {
      const bool is_first = world.rank() == 0, is_last = world.rank() + 1 == stages;
      // The last stage has them elsewhere; the data group doubles what is there.
      const std::vector<Bucket> tied = is_first  ? std::vector<Bucket>{{1, 2}}
                                       : is_last ? std::vector<Bucket>{{0, 2}}
                                                 : std::vector<Bucket>();
      Stage stage(world, tied, [](float* gradients, void*) {
        for (int i = 0; i < 3; ++i) gradients[i] *= 2;
        return Result<void>();
      });
      Floats gradients = is_first ? Floats{1, 2, 3} : Floats{10, 20, 30};
      stage.calls.finish(stage.calls.context, gradients.data(), nullptr);
      const Floats wanted = is_first ? Floats{2, 24, 46} : is_last ? Floats{24, 46, 60} : Floats{20, 40, 60};
      if (gradients == wanted) ++right;
      double mine = world.rank();
      std::vector<double> all(static_cast<std::size_t>(stages));
      stage.calls.exchange(stage.calls.context, &mine, all.data(), sizeof mine, nullptr);
      CHECK(all.back() == stages - 1);
      REQUIRE(world.barrier());
    });
    CHECK(right == stages);
  }
}

}  // namespace dlrun::runtime
