// The optimizer's state in parts (ZeRO stage 1), with real engines: whatever the optimizer, ranks that share
// its state come to the weights and the state of ranks that all have it, and checkpoints in parts are read at
// any number of ranks.
#include <mutex>

#include <doctest/doctest.h>

#include "runtime/checkpoint/file_system.hpp"
#include "runtime/comm/one_rank.hpp"
#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/models/models.hpp"
#include "runtime/optim/average.hpp"
#include "runtime/train/evaluation.hpp"
#include "runtime/train/gradient_exchange.hpp"
#include "runtime/train/resume.hpp"
#include "tests/unit/checkpoint/support.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {
namespace {

struct Setup {
  const char* optimizer = "adamw";
  Precision precision = Precision::f32;
  bool averages = false, clips = false;
  int accumulate = 1;
};

constexpr const char* kModel = "mnist-cnn";
const InputShape kShape{.channels = 1, .height = 12, .width = 12, .classes = 10};

std::unique_ptr<CpuEngine> engine_of(const Setup& setup, std::optional<StatePart> part) {
  EngineOptions options{.batch = 2, .precision = setup.precision, .bucket_bytes = 64 << 10};
  options.optimizer = default_optimizer(setup.optimizer);
  options.no_decay = {.vectors = NoDecay::Vectors::exempt};
  options.frozen = {"conv2.bias"};
  if (setup.averages) options.average = 0.5F;
  options.state_part = part;
  auto made = compile(*build_model(kModel, kShape), options);
  REQUIRE_MESSAGE(made.has_value(), made.error().text());
  return std::move(*made);
}

// A rank's gradients of a step, as a batch would leave them.
void leave_gradients(Engine& engine, int rank, int step) {
  const std::span<float> all = engine.gradients();
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = 1e-3F *
             std::sin(static_cast<float>(i % 1009) * static_cast<float>(rank + 1) + static_cast<float>(step));
}

Result<void> take_step(Engine& engine, GradientExchange& gradients, int step, const Setup& setup) {
  const ShardRange own = gradients.batches().own;
  for (int batch = own.begin; batch < own.end; ++batch) {
    TRY(gradients.begin(batch));
    leave_gradients(engine, batch, step);
    if (batch + 1 < own.end) gradients.keep();
  }
  for (std::size_t bucket = 0; bucket < engine.buckets().size(); ++bucket) TRY(gradients.start(bucket));
  TRY(gradients.finish());
  ParameterUpdate update(engine, gradients.group(), gradients.sums());
  const double clip = setup.clips ? 0.01 / std::sqrt(TRY(update.squares())) : 1;
  return update.apply({.learning_rate = 0.01F,
                       .weight_decay = 0.1F,
                       .gradient_scale = static_cast<float>(clip),
                       .updates = static_cast<std::uint64_t>(step)});
}

using Tensors = std::map<std::string, std::vector<float>>;

// What the ranks have together.
struct Whole {
  std::mutex mutex;
  Tensors tensors;
  std::vector<std::size_t> state_bytes;

  void add(const Engine& engine) {
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
      const TensorInfo& tensor = engine.tensors()[i];
      std::vector<float>& all = tensors[tensor.name];
      all.resize(elements_of(tensor.shape));
      std::vector<float> own(tensor.elements());
      REQUIRE(engine.read_tensor(i, own).has_value());
      const float* at = own.data();
      for (const TensorBox& box : tensor.boxes()) {
        copy_part(box, box, at, whole_box(tensor.shape), all.data());
        at += box.elements();
      }
    }
  }
};

TrainSpec spec_of(const Setup& setup) {
  TrainSpec spec;
  spec.accumulate = setup.accumulate;
  return spec;
}

enum class State { replicated, sharded };

void train(const Setup& setup, int ranks, State state, int steps, Whole& out) {
  out.state_bytes.resize(static_cast<std::size_t>(ranks));
  test::on_ranks(ranks, [&](Communicator& comm) {
    std::optional<StatePart> part;
    if (state == State::sharded) part = StatePart{comm.rank(), comm.size()};
    const auto engine = engine_of(setup, part);
    GradientExchange gradients = *GradientExchange::make(spec_of(setup), *engine, comm);
    for (int step = 0; step < steps; ++step) REQUIRE(take_step(*engine, gradients, step, setup).has_value());
    out.add(*engine);
    if (part) out.state_bytes[static_cast<std::size_t>(comm.rank())] = engine->sharded()->state_bytes();
  });
}

void check_equal(const Tensors& have, const Tensors& want) {
  REQUIRE(have.size() == want.size());
  for (const auto& each : want) {
    const std::string& name = each.first;
    CAPTURE(name);
    CHECK(have.at(name) == each.second);
  }
}

Manifest manifest_of(const Engine& engine, std::uint64_t step, int parts) {
  Manifest out = test::manifest_at(step, engine);
  out.parts = parts;
  return out;
}

}  // namespace

TEST_CASE("ranks that share the optimizer's state come to the bits of ranks that all have it") {
  Setup setup;
  int ranks = 2;
  SUBCASE("adamw on three ranks") {
    ranks = 3;
  }
  SUBCASE("sgd") {
    setup.optimizer = "sgd";
  }
  SUBCASE("adam with averages, several batches per update") {
    setup = {.optimizer = "adam", .averages = true, .accumulate = 3};
  }
  SUBCASE("lars, whose norms are of whole tensors") {
    setup.optimizer = "lars";
  }
  SUBCASE("lamb with averages and clipped gradients") {
    setup = {.optimizer = "lamb", .averages = true, .clips = true};
  }
  SUBCASE("bf16 with f32 weights") {
    if (!can_compute(Precision::bf16)) return;
    setup.precision = Precision::bf16;
  }
  Whole all, parts;
  train(setup, ranks, State::replicated, 2, all);
  train(setup, ranks, State::sharded, 2, parts);
  check_equal(parts.tensors, all.tensors);
}

TEST_CASE("a rank has its share of the state, within a few blocks of weights") {
  Whole parts;
  const auto whole = engine_of({}, std::nullopt);
  const std::size_t slot = whole->gradients().size_bytes(), all = 2 * slot;
  for (const int ranks : {1, 2, 4}) {
    train({}, ranks, State::sharded, 0, parts);
    for (const std::size_t bytes : parts.state_bytes)
      CHECK(static_cast<double>(bytes) < static_cast<double>(all) / ranks * 1.03 + 4096);
  }
}

TEST_CASE("averages that ranks share are put into all weights, and out of them") {
  Setup setup{.averages = true};
  Whole before;
  train(setup, 2, State::sharded, 2, before);
  Whole averaged, after;
  test::on_ranks(2, [&](Communicator& comm) {
    const auto engine = engine_of(setup, StatePart{comm.rank(), comm.size()});
    GradientExchange gradients = *GradientExchange::make(spec_of(setup), *engine, comm);
    for (int step = 0; step < 2; ++step) REQUIRE(take_step(*engine, gradients, step, setup).has_value());
    engine->swap_averages();
    REQUIRE(gather_weights(*engine, comm).has_value());
    for (std::size_t i = 0; i < engine->tensors().size(); ++i) {
      const TensorInfo& tensor = engine->tensors()[i];
      if (tensor.role != TensorInfo::Role::parameter) continue;
      std::vector<float> values(tensor.elements());
      REQUIRE(engine->read_tensor(i, values).has_value());
      CHECK(values == before.tensors.at(tensor.name + kAverageSuffix));
    }
    engine->swap_averages();
    REQUIRE(gather_weights(*engine, comm).has_value());
    after.add(*engine);
  });
  check_equal(after.tensors, before.tensors);
}

TEST_CASE("what three ranks wrote goes on at one, two and three ranks, and with the state on all ranks") {
  const test::Folder folder;
  const auto files = real_file_system();
  Whole written;
  std::vector<ManifestFile> listed(6);
  Manifest manifest;
  test::on_ranks(3, [&](Communicator& comm) {
    const Setup setup;
    const auto engine = engine_of(setup, StatePart{comm.rank(), comm.size()});
    GradientExchange gradients = *GradientExchange::make(spec_of(setup), *engine, comm);
    for (int step = 0; step < 2; ++step) REQUIRE(take_step(*engine, gradients, step, setup).has_value());
    written.add(*engine);
    const CheckpointPart part{comm.rank(), comm.size()};
    Snapshot snapshot = *Snapshot::make(*engine, pieces_of(*engine, part));
    REQUIRE(snapshot.take(*engine).has_value());
    const auto own = write_part(*files, folder.path, 2, part, {snapshot.file(0), snapshot.file(1)});
    REQUIRE_MESSAGE(own.has_value(), own.error().text());
    const auto at = static_cast<std::size_t>(2 * comm.rank());
    listed[at] = (*own)[0], listed[at + 1] = (*own)[1];
    if (comm.rank() == 0) manifest = manifest_of(*engine, 2, 3);
  });
  manifest.files = listed;
  REQUIRE(commit_parts(*files, folder.path, manifest).has_value());
  for (const State state : {State::replicated, State::sharded})
    for (const int ranks : {1, 2, 3}) {
      CAPTURE(ranks);
      Whole there;
      test::on_ranks(ranks, [&](Communicator& comm) {
        std::optional<StatePart> part;
        if (state == State::sharded) part = StatePart{comm.rank(), comm.size()};
        const auto engine = engine_of({}, part);
        std::optional<LoadedCheckpoint> chosen;
        if (comm.rank() == 0)
          chosen =
              std::move(choose_checkpoint(*files, folder.path, manifest_of(*engine, 2, 3).identity)->newest);
        const auto start = resume(*engine, comm, chosen ? &*chosen : nullptr, folder.path);
        REQUIRE_MESSAGE(start.has_value(), start.error().text());
        CHECK(start->position.step == 2);
        there.add(*engine);
      });
      check_equal(there.tensors, written.tensors);
    }
}

}  // namespace dlrun::runtime
