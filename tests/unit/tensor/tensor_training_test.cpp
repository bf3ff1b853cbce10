// Training in tensor groups, with ranks as threads: the same first weights bit for bit, and losses and
// weights of the whole model up to the order of additions.
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>

#include <doctest/doctest.h>

#include "../folder.hpp"
#include "../graph/fixture.hpp"
#include "../train/thread_ranks.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/snapshot.hpp"
#include "runtime/checkpoint/tensor_reader.hpp"
#include "runtime/checkpoint/writer.hpp"
#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/train/gradient_exchange.hpp"
#include "runtime/train/process_groups.hpp"
#include "runtime/train/totals.hpp"
#include "tensor_models.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

struct Form {
  int tensor = 1, data = 1;
  Precision precision = Precision::f32;
  std::uint64_t steps = 4;
  std::filesystem::path save = {}, load = {};  // the folder of checkpoints
};

struct Trained {
  std::vector<double> losses, accuracies;
  double square_sum = 0;
  std::map<std::string, std::vector<float>> weights;  // of the whole model
  std::map<int, std::size_t> parameters;              // numbers that each rank has
  std::vector<std::string> unequal;                   // whole tensors of which ranks have other bits
};

InputShape shape_of(const Graph& graph) {
  const Shape& shape = graph.nodes[0].shape;
  return shape.axes == Axes::sequence ? token_sequences(shape.positions(), 40) : kPixels;
}

class Rank {
 public:
  Rank(const Graph& whole, const Form& form, Communicator& world)
      : whole_(whole), form_(form), world_(world) {
    ranks_ = {{world.rank() % form.tensor, form.tensor}, world.rank() / form.tensor, form.data};
  }

  Result<void> train(Trained& out, std::mutex& lock) {
    TRY(groups_.connect(world_, ranks_));
    EngineOptions options{
        .batch = 3, .precision = form_.precision, .rank = ranks_.data, .bucket_bytes = 2048};
    options.optimizer = momentum_sgd(0.9F);
    options.tensor_group = &groups_;
    engine_ = TRY(compile(ranks_.tensor.alone() ? whole_ : TRY(split_graph(whole_, ranks_.tensor)), options));
    if (!form_.load.empty()) TRY(load_state());
    auto gradients = TRY(GradientExchange::make(TrainSpec{}, *engine_, groups_.data(), {}, groups_.tensor()));
    for (std::uint64_t step = 0; step < form_.steps; ++step) TRY(take(step, gradients, out, lock));
    if (form_.steps > 0) TRY(add_up_squares(gradients, out, lock));
    if (!form_.save.empty()) TRY(save_state());
    return collect(out, lock);
  }

 private:
  Result<void> take(std::uint64_t step, GradientExchange& gradients, Trained& out, std::mutex& lock) {
    const auto seed = step * static_cast<std::uint64_t>(form_.data) + static_cast<std::uint64_t>(ranks_.data);
    put(*engine_, random_batch(shape_of(whole_), 3, 7 + seed));
    TRY(gradients.begin(gradients.batches().own.begin));
    Result<void> sent;
    const BatchResult result = engine_->train_batch(step, [&](std::size_t bucket) {
      if (sent) sent = gradients.start(bucket);
    });
    TRY(engine_->status());
    TRY(std::move(sent));
    store({{result.loss_sum, static_cast<double>(result.correct), 3}, {}}, engine_->spare_slots());
    TRY(gradients.finish());
    const StepTotals sums = load(engine_->spare_slots());
    engine_->apply({.learning_rate = 0.1F, .gradient_scale = 1.0F / static_cast<float>(form_.data)});
    if (world_.rank() != 0) return {};
    const std::lock_guard hold(lock);
    out.losses.push_back(sums.totals.loss());
    out.accuracies.push_back(sums.totals.accuracy());
    return {};
  }

  // Every rank takes part in the sum, and the first one notes it.
  Result<void> add_up_squares(GradientExchange& gradients, Trained& out, std::mutex& lock) {
    const double sum = TRY(gradients.square_sum());
    if (world_.rank() != 0) return {};
    const std::lock_guard hold(lock);
    out.square_sum = sum;
    return {};
  }

  // Each rank its part, and the first one makes a checkpoint of them.
  Result<void> save_state() {
    const auto files = real_file_system();
    const CheckpointPart part{ranks_.tensor.part, ranks_.tensor.parts};
    Snapshot snapshot = TRY(Snapshot::make(*engine_, pieces_of(*engine_, part)));
    TRY(snapshot.take(*engine_));
    const auto written =
        TRY(write_part(*files, form_.save, form_.steps, part, {snapshot.file(0), snapshot.file(1)}));
    std::vector<std::array<std::uint64_t, 4>> all(static_cast<std::size_t>(part.parts));
    const std::array mine{written[0].bytes, written[0].checksum, written[1].bytes, written[1].checksum};
    TRY(world_.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
    if (world_.rank() == 0) {
      Manifest manifest;
      manifest.identity.samples = 1;
      manifest.identity.model = whole_.model;
      manifest.position.step = form_.steps;
      manifest.parts = part.parts;
      for (int number = 0; number < part.parts; ++number) {
        const auto names = state_files_of({number, part.parts});
        const auto& one = all[static_cast<std::size_t>(number)];
        manifest.files.push_back({names[0], one[0], one[1]});
        manifest.files.push_back({names[1], one[2], one[3]});
      }
      TRY(commit_parts(*files, form_.save, manifest));
    }
    return world_.barrier();
  }

  Result<void> load_state() {
    const auto files = real_file_system();
    const CatalogEntry newest = TRY(list_checkpoints(*files, form_.load)).front();
    const Manifest manifest = TRY(read_manifest(*files, form_.load, newest));
    return restore(*engine_, TRY(TensorReader::open(form_.load / newest.name, manifest)));
  }

  Result<void> collect(Trained& out, std::mutex& lock) {
    const std::lock_guard hold(lock);
    for (std::size_t i = 0; i < engine_->tensors().size(); ++i) {
      const TensorInfo& tensor = engine_->tensors()[i];
      std::vector<float> values(tensor.elements());
      TRY(engine_->read_tensor(i, values));
      if (tensor.role == TensorInfo::Role::parameter) out.parameters[world_.rank()] += values.size();
      std::vector<float>& whole = out.weights[tensor.name];
      if (!tensor.held) {
        if (!whole.empty() && whole != values) out.unequal.push_back(tensor.name);
        whole = values;
        continue;
      }
      whole.resize(elements_of(tensor.shape));
      const float* from = values.data();
      for (const TensorBox& box : *tensor.held) {
        copy_part(box, box, from, whole_box(tensor.shape), whole.data());
        from += box.elements();
      }
    }
    return {};
  }

  const Graph& whole_;
  Form form_;
  Communicator& world_;
  GroupRanks ranks_;
  ProcessGroups groups_;
  std::unique_ptr<Engine> engine_;
};

Trained train(const Graph& whole, const Form& form) {
  Trained out;
  std::mutex lock;
  std::string failure;
  dlrun::test::on_ranks(form.tensor * form.data, [&](Communicator& world) {
    const auto done = Rank(whole, form, world).train(out, lock);
    const std::lock_guard hold(lock);
    if (!done) failure = done.error().text();
  });
  CHECK(failure == "");
  CHECK(out.unequal == std::vector<std::string>{});
  return out;
}

// Largest difference of any weight and of momentum, over the largest number of its tensor.
double largest_distance(const Trained& left, const Trained& right) {
  double out = 0;
  REQUIRE(left.weights.size() == right.weights.size());
  for (const auto& [name, values] : left.weights) {
    const std::vector<float>& other = right.weights.at(name);
    REQUIRE(values.size() == other.size());
    out = std::max(out, distance(Numbers(values.begin(), values.end()), Numbers(other.begin(), other.end())));
  }
  return out;
}

void check_equal(const Graph& whole, const Form& form) {
  Form undivided = form;
  undivided.tensor = 1;
  const Trained expected = train(whole, undivided), got = train(whole, form);
  const bool is_f32 = form.precision == Precision::f32;
  CAPTURE(form.tensor);
  REQUIRE(got.losses.size() == form.steps);
  for (std::size_t step = 0; step < form.steps; ++step) {
    CAPTURE(step);
    CHECK(got.losses[step] == doctest::Approx(expected.losses[step]).epsilon(is_f32 ? 1e-6 : 1e-3));
    if (is_f32) CHECK(got.accuracies[step] == doctest::Approx(expected.accuracies[step]));
  }
  CHECK(got.square_sum == doctest::Approx(expected.square_sum).epsilon(is_f32 ? 1e-5 : 1e-2));
  CHECK(largest_distance(expected, got) < (is_f32 ? 4e-6 : 0.03));
}

}  // namespace

TEST_CASE("any number of parts starts from the same weights, bit for bit") {
  for (const Graph& whole : {gpt_like(), llama_like(), fully_connected_model()}) {
    const Trained one = train(whole, {.steps = 0}), two = train(whole, {.tensor = 2, .steps = 0});
    CHECK(one.weights == two.weights);
  }
  CHECK(train(gpt_like(), {.steps = 0}).weights == train(gpt_like(), {.tensor = 4, .steps = 0}).weights);
}

TEST_CASE("divided models train as the whole one does, up to the order of additions") {
  check_equal(gpt_like(), {.tensor = 2});
  check_equal(gpt_like(), {.tensor = 4});
  check_equal(gpt_like(40, ", tied: false, dropout: 0.1"), {.tensor = 2});
  check_equal(llama_like(), {.tensor = 2});
  check_equal(llama_like(48, 39), {.tensor = 2});
  check_equal(fully_connected_model(), {.tensor = 2});
  check_equal(fully_connected_model(), {.tensor = 4});
}

TEST_CASE("tensor groups of two in data groups of two") {
  check_equal(gpt_like(), {.tensor = 2, .data = 2});
  check_equal(fully_connected_model(), {.tensor = 2, .data = 2});
}

TEST_CASE("in bf16, too") {
  if (!can_compute(Precision::bf16)) return;
  check_equal(gpt_like(), {.tensor = 2, .precision = Precision::bf16});
  check_equal(llama_like(), {.tensor = 2, .precision = Precision::bf16});
  check_equal(fully_connected_model(), {.tensor = 2, .precision = Precision::bf16});
}

TEST_CASE("a checkpoint in parts has the same bits at any other number of parts") {
  const dlrun::test::Folder folder;
  const Graph whole = gpt_like();
  const std::filesystem::path two = folder.path / "two", four = folder.path / "four";
  const Trained saved = train(whole, {.tensor = 2, .steps = 2, .save = two});
  CHECK(train(whole, {.steps = 0, .load = two}).weights == saved.weights);  // momentum, too
  CHECK(train(whole, {.tensor = 4, .steps = 0, .save = four, .load = two}).weights == saved.weights);
  CHECK(train(whole, {.tensor = 2, .steps = 0, .load = four}).weights == saved.weights);
  const Trained continued = train(whole, {.tensor = 4, .steps = 2, .load = two});
  const Trained at_once = train(whole, {.steps = 2, .load = two});
  CHECK(largest_distance(continued, at_once) < 4e-6);
}

TEST_CASE("a rank has its part of the divided weights and no more") {
  const Graph whole = llama_like();
  const Trained one = train(whole, {.steps = 0}), two = train(whole, {.tensor = 2, .steps = 0});
  const std::size_t norms = 5 * 32;  // they are whole
  for (const auto& [rank, numbers] : two.parameters)
    CHECK(numbers == (one.parameters.at(0) - norms) / 2 + norms);
}
