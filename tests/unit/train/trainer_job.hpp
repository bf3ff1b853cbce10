// One training job over the fake model and ranks that are threads: each run() is a process of its own in
// miniature.
#pragma once

#include <cstring>

#include <doctest/doctest.h>

#include "runtime/checkpoint/file_system.hpp"
#include "runtime/comm/elastic/elastic_world.hpp"
#include "runtime/data/synthetic.hpp"
#include "runtime/train/resume.hpp"
#include "runtime/train/servers/parameter_server.hpp"
#include "runtime/train/trainer.hpp"
#include "tests/unit/checkpoint/support.hpp"
#include "tests/unit/train/fake_engine.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::test {

struct Job {
  runtime::DataParts data = *runtime::make_synthetic(small_shape, 203, 1);
  runtime::TrainSpec spec;
  int world = 1;
  std::optional<std::uint64_t> stop_at;  // the step at which one rank wants to stop
  int who_wants_to_stop = 0;
  std::size_t poison_after = 0;
  bool computes_on_a_device = false;
  bool accumulates_itself = false;
  std::optional<int> shards;
  // Set: the engine sums gradients itself, by this.
  std::function<std::unique_ptr<runtime::DeviceAllreduce>(runtime::Communicator& comm)> device_sum;
  std::string control;  // the agent's socket
  // Of an elastic run whose other ranks have started before.
  runtime::ElasticWorld* elastic_world = nullptr;
  std::optional<runtime::ElasticWorld::Joined> entered = {};
  std::function<Result<void>()> connect_devices;
  int servers = 0;          // ranks of their own, besides the world
  Environment environment;  // of all ranks

  struct Outcome {
    Result<runtime::Ending> ending;
    runtime::Position position;
    std::vector<float> weights, momentum;
    std::vector<float> statistics = {0.0F};
    double epoch_loss = 0, samples = 0;  // of the last epoch; of all
    int collectives = 0;
    std::vector<std::uint64_t> steps_seen = {};
    std::uint32_t most_lead = 0;  // over the slowest, where servers allow one
  };

  Job() {
    spec.model = "fake";
    spec.batch = 8;
    spec.epochs = 3;
    spec.seed = 1;
    spec.optimizer = {.learning_rate = 0.1, .weight_decay = 1e-4};
  }

  std::vector<Outcome> run() {
    std::vector<Outcome> out(static_cast<std::size_t>(world), Outcome{runtime::Ending::stopped, {}, {}, {}});
    on_ranks(world + servers, [&](runtime::Communicator& comm) {
      if (servers == 0) return rank(comm, out[static_cast<std::size_t>(comm.rank())]);
      const auto group = *comm.split(comm.rank() < world ? 0 : 1, comm.rank());
      if (comm.rank() < world) return rank(*group, out[static_cast<std::size_t>(comm.rank())], &comm);
      REQUIRE(comm.exchange_start([&](runtime::Transport& link) {
                    return runtime::serve_parameters(link, {world, servers}, spec.optimizer.optimizer,
                                                     spec.allreduce.dtype);
                  })
                  .has_value());
    });
    return out;
  }

  // `with_servers`: the ranks and their servers, where there are any.
  void rank(runtime::Communicator& comm, Outcome& out, runtime::Communicator* with_servers = nullptr) {
    FakeEngine engine(small_shape, spec.batch);
    engine.poison_after = poison_after;
    engine.computes_on_a_device = computes_on_a_device;
    engine.accumulates_itself = accumulates_itself;
    if (device_sum) engine.device_sum = device_sum(comm);
    runtime::Reporter reporter(runtime::ControlChannel::open(control, comm.rank()),
                               comm.rank() == 0 ? 99 : comm.rank(), {});  // 99: quiet
    const auto files = runtime::real_file_system();
    std::unique_ptr<runtime::Checkpointing> checkpoints;
    std::optional<runtime::LoadedCheckpoint> chosen;
    if (comm.rank() == 0 && !spec.checkpoint.folder.empty()) {
      runtime::Manifest facts = manifest_at(0, engine);
      facts.identity.samples = data.train.count;
      checkpoints = *runtime::Checkpointing::open(
          spec.checkpoint, *files, engine, facts,
          {.process = this_process(), .job = {}, .run = "trainer-test"}, reporter);
      chosen = *checkpoints->choose(reporter);
    }
    const runtime::Resumed start = *runtime::resume(engine, comm, chosen ? &*chosen : nullptr);
    runtime::Trainer* running = nullptr;
    static_cast<ThreadRank&>(comm).elastic_world = elastic_world;
    std::unique_ptr<runtime::ServerClient> client;
    if (with_servers != nullptr)
      client = *runtime::ServerClient::make(spec, engine, {*with_servers, comm}, environment);
    if (client && checkpoints) checkpoints->set_before_save([&] { return client->read_state(); });
    runtime::GradientExchange gradients =
        *runtime::GradientExchange::make(spec, engine, comm, shards, {.servers = client.get()});
    if (connect_devices) gradients.set_connect_devices(connect_devices);
    runtime::Trainer trainer({.spec = spec,
                              .engine = engine,
                              .comm = comm,
                              .gradients = gradients,
                              .data = data,
                              .reporter = reporter,
                              .checkpoints = checkpoints.get(),
                              .local_requests =
                                  [&] {
                                    const bool now = stop_at && comm.rank() == who_wants_to_stop &&
                                                     running->position().step + 1 >= *stop_at;
                                    return runtime::Requests{.save = false, .stop = now};
                                  },
                              .entered = entered,
                              .epoch_sums = start.epoch_sums},
                             start.position);
    running = &trainer;
    out.ending = spec.benchmark ? trainer.run_benchmark(*spec.benchmark) : trainer.run();
    out.position = trainer.position();
    if (client) out.most_lead = client->most_lead();
    if (client && comm.rank() == 0) REQUIRE(client->read_state().has_value());
    if (client) REQUIRE(client->finish().has_value());
    out.weights.resize(160);
    out.momentum.resize(160);
    REQUIRE(engine.read_tensor(0, out.weights).has_value());
    REQUIRE(engine.read_tensor(2, out.statistics).has_value());
    REQUIRE(engine.read_tensor(3, out.momentum).has_value());
    out.epoch_loss = reporter.epoch_totals().loss_sum;
    out.samples = reporter.so_far().samples;
    out.collectives = static_cast<ThreadRank&>(comm).collectives();
    out.steps_seen = engine.steps_seen;
    CHECK_FALSE(engine.averaged);
    CHECK_FALSE(engine.evaluated_by_weights);
  }
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace dlrun::test
