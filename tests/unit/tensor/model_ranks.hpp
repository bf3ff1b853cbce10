// Trainings of small models that ranks divide, with ranks as threads: what they come to, of the whole model.
#pragma once

#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>

#include <doctest/doctest.h>

#include "../graph/fixture.hpp"
#include "../train/thread_ranks.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/snapshot.hpp"
#include "runtime/checkpoint/tensor_reader.hpp"
#include "runtime/checkpoint/writer.hpp"
#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/train/gradient_exchange.hpp"
#include "runtime/train/model_checks.hpp"
#include "runtime/train/pipeline_schedule.hpp"
#include "runtime/train/process_groups.hpp"
#include "runtime/train/totals.hpp"
#include "tensor_models.hpp"

namespace dlrun::runtime::test {

enum class OptimizerState { replicated, sharded };

struct Form {
  int tensor = 1, data = 1, pipeline = 1;
  OptimizerState state = OptimizerState::replicated;
  Precision precision = Precision::f32;
  std::uint64_t steps = 4;
  int accumulate = 1;
  dlrun::test::Addition addition = dlrun::test::Addition::by_rank;
  std::filesystem::path save = {}, load = {};  // the folder of checkpoints
  SequenceParallel sequence = SequenceParallel::off;
  std::vector<StageCut> cuts = {};
};

struct Trained {
  std::vector<double> losses, accuracies;
  double square_sum = 0;
  std::map<std::string, std::vector<float>> weights;  // of the whole model
  std::map<int, std::size_t> parameters;              // numbers that each rank has
  std::vector<std::string> unequal;                   // whole tensors of which ranks have other bits
};

inline InputShape shape_of(const Graph& graph) {
  const Shape& shape = graph.nodes[0].shape;
  if (std::holds_alternative<op::TargetLoss>(graph.nodes.back().operation)) return kWithTargets;
  return shape.axes == Axes::sequence ? token_sequences(shape.positions(), 40) : kPixels;
}

class Rank {
 public:
  Rank(const Graph& whole, const Form& form, Communicator& world)
      : whole_(whole), form_(form), world_(world) {
    const int rank = world.rank() / form.tensor;  // as Megatron-LM numbers them
    ranks_ = {{{world.rank() % form.tensor, form.tensor, form.sequence}, {rank / form.data, form.pipeline}},
              rank % form.data,
              form.data};
  }

  Result<void> train(Trained& out, std::mutex& lock) {
    TRY(groups_.connect(world_, ranks_));
    EngineOptions options{
        .batch = 3, .precision = form_.precision, .rank = ranks_.data, .bucket_bytes = 2048};
    options.optimizer = momentum_sgd(0.9F);
    options.tensor_group = &groups_;
    if (form_.state == OptimizerState::sharded)
      options.state_part = StatePart{ranks_.data, ranks_.data_ranks};
    options.stage_links = &groups_.links();
    TrainSpec spec;
    spec.accumulate = form_.accumulate;
    spec.cuts = form_.cuts;
    engine_ = TRY(compile(TRY(divided_graph(spec, whole_, ranks_.model)), options));
    if (!form_.load.empty()) TRY(load_state());
    auto gradients = TRY(
        GradientExchange::make(spec, *engine_, groups_.data(), {}, {groups_.tensor(), groups_.pipeline()}));
    for (std::uint64_t step = 0; step < form_.steps; ++step) TRY(take(step, gradients, out, lock));
    if (form_.steps > 0) TRY(measure(gradients, out, lock));
    if (!form_.save.empty()) TRY(save_state());
    return collect(out, lock);
  }

 private:
  Result<void> measure(const GradientExchange& gradients, Trained& out, std::mutex& lock) {
    const ParameterUpdate update(*engine_, groups_.data(), gradients.sums());
    const double squares = groups_.model() == nullptr ? TRY(update.squares()) : TRY(gradients.square_sum());
    const std::lock_guard hold(lock);
    out.square_sum = squares;
    return {};
  }

  Result<void> take(std::uint64_t step, GradientExchange& gradients, Trained& out, std::mutex& lock) {
    groups_.links().begin_update(ranks_.model.stage.is_first() ? 0 : form_.accumulate);
    if (ranks_.model.stage.alone())
      for (int batch = 0; batch < form_.accumulate; ++batch) TRY(compute(step, batch, gradients));
    else
      for (const PipelineStep& one : one_forward_one_backward(ranks_.model.stage, form_.accumulate))
        TRY(one.pass == PipelineStep::Pass::forward ? forward(step, one) : backward(step, one, gradients));
    TRY(gradients.finish());
    const StepTotals sums = load(engine_->spare_slots());
    TRY(ParameterUpdate(*engine_, groups_.data(), gradients.sums())
            .apply({.learning_rate = 0.1F,
                    .gradient_scale = 1.0F / static_cast<float>(form_.data * form_.accumulate)}));
    if (world_.rank() != 0) return {};
    const std::lock_guard hold(lock);
    out.losses.push_back(sums.totals.loss());
    out.accuracies.push_back(sums.totals.accuracy());
    return {};
  }

  void fill(std::uint64_t step, int batch) {
    const auto all = static_cast<std::uint64_t>(form_.data * form_.accumulate);
    const int mine = ranks_.data * form_.accumulate + batch;
    put(*engine_, random_batch(shape_of(whole_), 3, 7 + step * all + static_cast<std::uint64_t>(mine)));
  }

  std::uint64_t draw(std::uint64_t step, int batch) const {
    return step * static_cast<std::uint64_t>(form_.accumulate) + static_cast<std::uint64_t>(batch);
  }

  using Sender = std::function<void(std::size_t)>;
  Result<void> finish(int batch, GradientExchange& gradients,
                      const std::function<BatchResult(const Sender&)>& work) {
    const bool is_last = batch + 1 == form_.accumulate;
    Result<void> sent;
    TRY(gradients.begin(gradients.batches().own.begin + batch));
    const BatchResult result = work([&](std::size_t bucket) {
      if (sent && is_last) sent = gradients.start(bucket);
    });
    TRY(engine_->status());
    TRY(std::move(sent));
    const double rows = ranks_.model.stage.is_last() ? 3 : 0;
    store({{result.loss_sum, static_cast<double>(result.correct), rows}, {}}, engine_->spare_slots());
    if (!is_last) gradients.keep();
    return {};
  }

  Result<void> compute(std::uint64_t step, int batch, GradientExchange& gradients) {
    fill(step, batch);
    return finish(batch, gradients,
                  [&](const Sender& sender) { return engine_->train_batch(draw(step, batch), sender); });
  }
  Result<void> forward(std::uint64_t step, const PipelineStep& one) {
    fill(step, one.micro_batch);
    engine_->staged()->forward(draw(step, one.micro_batch), one.place);
    return engine_->status();
  }
  Result<void> backward(std::uint64_t step, const PipelineStep& one, GradientExchange& gradients) {
    return finish(one.micro_batch, gradients, [&](const Sender& sender) {
      return engine_->staged()->backward(draw(step, one.micro_batch), one.place, sender);
    });
  }

  // Each rank its part, and the first one makes a checkpoint of them.
  Result<void> save_state() {
    const auto files = real_file_system();
    Communicator& writers = groups_.model() == nullptr ? groups_.data() : *groups_.all_in_groups();
    const CheckpointPart part{writers.rank(), writers.size(), form_.tensor, form_.pipeline};
    Snapshot snapshot = TRY(Snapshot::make(*engine_, pieces_of(*engine_, part)));
    TRY(snapshot.take(*engine_));
    const auto written =
        TRY(write_part(*files, form_.save, form_.steps, part, {snapshot.file(0), snapshot.file(1)}));
    std::vector<std::array<std::uint64_t, 4>> all(static_cast<std::size_t>(part.parts));
    const std::array mine{written[0].bytes, written[0].checksum, written[1].bytes, written[1].checksum};
    TRY(writers.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
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
      // Running statistics are of a rank's own samples.
      if (tensor.role == TensorInfo::Role::statistic && ranks_.data != 0) continue;
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

inline Trained train(const Graph& whole, const Form& form) {
  Trained out;
  std::mutex lock;
  std::string failure;
  dlrun::test::on_ranks(
      form.tensor * form.data * form.pipeline,
      [&](Communicator& world) {
        const auto done = Rank(whole, form, world).train(out, lock);
        const std::lock_guard hold(lock);
        if (!done) failure = done.error().text();
      },
      form.addition);
  CHECK(failure == "");
  CHECK(out.unequal == std::vector<std::string>{});
  return out;
}

// Largest difference of any weight and of momentum, over the largest number of its tensor.
inline double largest_distance(const Trained& left, const Trained& right) {
  double out = 0;
  REQUIRE(left.weights.size() == right.weights.size());
  for (const auto& [name, values] : left.weights) {
    const std::vector<float>& other = right.weights.at(name);
    REQUIRE(values.size() == other.size());
    out = std::max(out, distance(Numbers(values.begin(), values.end()), Numbers(other.begin(), other.end())));
  }
  return out;
}

inline void check_equal(const Graph& whole, const Form& form) {
  Form undivided = form;
  undivided.tensor = undivided.pipeline = 1;
  undivided.state = OptimizerState::replicated;
  const Trained expected = train(whole, undivided), got = train(whole, form);
  const bool is_f32 = form.precision == Precision::f32;
  CAPTURE(form.tensor);
  CAPTURE(form.pipeline);
  REQUIRE(got.losses.size() == form.steps);
  for (std::size_t step = 0; step < form.steps; ++step) {
    CAPTURE(step);
    CHECK(got.losses[step] == doctest::Approx(expected.losses[step]).epsilon(is_f32 ? 1e-6 : 1e-3));
    if (is_f32) CHECK(got.accuracies[step] == doctest::Approx(expected.accuracies[step]));
  }
  CHECK(got.square_sum == doctest::Approx(expected.square_sum).epsilon(is_f32 ? 1e-5 : 1e-2));
  CHECK(largest_distance(expected, got) < (is_f32 ? 4e-6 : 0.03));
}

}  // namespace dlrun::runtime::test
