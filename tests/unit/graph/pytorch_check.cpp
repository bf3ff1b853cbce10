// See pytorch_check.hpp.
#include "pytorch_check.hpp"

#include <fstream>

#include <doctest/doctest.h>

#include "pytorch.hpp"
#include "runtime/cpu/kernels/attention.hpp"
#include "runtime/cpu/operators/noise.hpp"
#include "runtime/engine/random_keys.hpp"
#include "runtime/graph/operators/traits.hpp"
#include "runtime/graph/target_measure.hpp"
#include "src/base/json.hpp"
#include "tests/unit/folder.hpp"

namespace dlrun::runtime::test {

namespace {

template <class T>
void write_values(const dlrun::test::Folder& folder, const std::string& name, const std::vector<T>& values) {
  std::ofstream file(folder.path / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(T)));
  REQUIRE(file.good());
}

const char* target_name(op::SigmoidCrossEntropy::Target target) {
  static constexpr const char* kNames[] = {"labels", "real", "fake", "generator"};
  return kNames[static_cast<std::size_t>(target)];
}

Json describe(const Node& node, std::size_t number) {
  Json inputs = Json::array();
  for (const Value value : node.inputs) inputs.push_back(value.get());
  Json json = {{"kind", operation_name(node.operation)},
               {"name", node.name},
               {"number", number},
               {"inputs", inputs},
               {"frozen", node.weights == Weights::frozen},
               {"shape", {node.shape.channels, node.shape.height, node.shape.width}}};
  if (node.shape.axes == Axes::volume)
    json["shape"] = {node.shape.channels, node.shape.depth, node.shape.height, node.shape.width};
  std::visit(
      [&json](const auto& spec) {
        if constexpr (requires { spec.stride; }) {
          json["stride"] = spec.stride;
          json["padding"] = spec.padding;
        }
        if constexpr (requires { spec.output_padding; }) json["output_padding"] = spec.output_padding;
        if constexpr (requires { spec.slope; }) json["slope"] = spec.slope;
        if constexpr (requires { spec.form; })
          json["approximate"] = spec.form == op::Gelu::Form::erf ? "none" : "tanh";
        if constexpr (requires { spec.target; }) json["target"] = target_name(spec.target);
        if constexpr (requires { spec.window; }) {
          json["window"] = spec.window;
          json["keeps_edge"] = spec.edge == Edge::kept;
        }
        if constexpr (requires { spec.counted; }) json["counts_padding"] = spec.counted == Padding::counts;
        if constexpr (requires { spec.groups; }) {
          json["groups"] = spec.groups;
          json["padding_width"] = spec.padding_width;
        }
        if constexpr (requires { spec.alpha; }) {
          json["size"] = spec.size;
          json["alpha"] = spec.alpha;
          json["beta"] = spec.beta;
          json["bias"] = spec.bias;
        }
        if constexpr (requires { spec.weight; }) json["weight"] = spec.weight;
        if constexpr (requires { spec.measure; }) {
          json["measure"] = target_measures()[static_cast<std::size_t>(spec.measure)];
          json["delta"] = spec.delta;
        }
        if constexpr (requires { spec.smoothing; }) json["smoothing"] = spec.smoothing;
        if constexpr (requires { spec.epsilon; }) json["epsilon"] = spec.epsilon;
        if constexpr (requires { spec.momentum; }) json["momentum"] = spec.momentum;
        if constexpr (requires { spec.key_heads; }) {
          json["heads"] = spec.heads;
          json["key_heads"] = spec.keys();
          json["rotary_base"] = spec.rotary_base;
          json["dropout"] = spec.dropout;
        }
      },
      node.operation);
  return json;
}

const char* role_name(TensorInfo::Role role) {
  return role == TensorInfo::Role::parameter ? "parameter" : "statistic";
}

// What the shares of attention are multiplied by: [row][head][query][key].
std::vector<float> share_mask(const Node& node, const op::Attention& spec, std::int64_t rows,
                              const DropoutRule& rule) {
  const std::int64_t positions = node.shape.positions(), wide = (positions + 15) / 16 * 16;
  std::vector<float> mask, row(static_cast<std::size_t>(wide));
  for (std::int64_t query = 0; query < rows * spec.heads * positions; ++query) {
    std::fill(row.begin(), row.end(), 1.0F);
    kernels::dropout({row.data(), Precision::f32}, {row.data(), Precision::f32}, 0, row.size(),
                     kernels::ShareDropout{rule, 0}.of_row(query));
    mask.insert(mask.end(), row.begin(), row.begin() + positions);
  }
  return mask;
}

// What each of the model's dropout layers multiplies each element by in step 17.
void write_dropout_mask(const dlrun::test::Folder& folder, const Graph& graph, std::int64_t rows,
                        Precision precision) {
  std::size_t layer = 0;
  for (std::size_t number = 0; number < graph.nodes.size(); ++number) {
    const Node& node = graph.nodes[number];
    const RandomRule drawn = random_of(node.operation);
    if (drawn.of != Randomness::mask) continue;
    const DropoutRule rule =
        dropout_rule({.batch = rows, .precision = precision}, layer++, 17, drawn.probability);
    if (const auto* attention = std::get_if<op::Attention>(&node.operation)) {
      write_values(folder, fmt::format("mask.{}", number), share_mask(node, *attention, rows, rule));
      continue;
    }
    std::vector<float> mask(static_cast<std::size_t>(rows * node.shape.elements()), 1.0F);
    REQUIRE(mask.size() % 16 == 0);
    kernels::dropout({mask.data(), Precision::f32}, {mask.data(), Precision::f32}, 0, mask.size(), rule);
    write_values(folder, fmt::format("mask.{}", number), mask);
  }
}

// What a generator starts from in step 17 and in evaluation.
void write_noise(const dlrun::test::Folder& folder, const Graph& graph, std::int64_t rows) {
  for (const Node& node : graph.nodes) {
    if (!std::holds_alternative<op::Noise>(node.operation)) continue;
    const auto size = static_cast<std::size_t>(node.shape.channels);
    for (const auto& [name, step] :
         {std::pair<const char*, std::uint64_t>{"noise.train", 17}, {"noise.shown", kShownNoise}}) {
      std::vector<float> noise(static_cast<std::size_t>(rows) * size);
      for (std::int64_t row = 0; row < rows; ++row)
        draw_noise(std::span(noise).subspan(static_cast<std::size_t>(row) * size, size), {.batch = rows},
                   step, row);
      write_values(folder, name, noise);
    }
  }
}

// Steps of plain SGD, always on the same batch: the losses before each, and the parameters after them.
void take_steps(Engine& engine, int steps, const dlrun::test::Folder& folder, Json& job) {
  constexpr double kRate = 0.25;
  job["sgd"] = {{"steps", steps}, {"rate", kRate}};
  for (int step = 0; step < steps; ++step) {
    job[fmt::format("sgd loss {}", step)] = engine.train_batch(17, nullptr).loss_sum;
    engine.apply({.learning_rate = kRate});
  }
  for (const TensorInfo& info : engine.tensors())
    if (steps > 0 && info.role == TensorInfo::Role::parameter)
      write_values(folder, "sgd." + info.name, read(engine, info.name));
}

}  // namespace

void check_against_pytorch(const Graph& graph, const Batch& batch, Precision precision, double tolerance,
                           Start start, int sgd_steps) {
  const dlrun::test::Folder folder;
  if (!can_compute(precision)) return;
  const std::int64_t rows = batch.rows();
  const bool mixed = !batch.other_labels.empty();
  const auto engine = engine_for(graph, rows, precision, mixed ? Labels::mixed : Labels::one);
  if (start == Start::scrambled) scramble(*engine);
  put(*engine, batch);
  Json job = {{"batch", rows},          {"labels per row", batch.labels_per_row},
              {"mixed", mixed},         {"precision", precision == Precision::bf16 ? "bf16" : "f32"},
              {"nodes", Json::array()}, {"tensors", Json::array()}};
  for (std::size_t number = 0; number < graph.nodes.size(); ++number)
    job["nodes"].push_back(describe(graph.nodes[number], number));
  for (const TensorInfo& info : engine->tensors()) {
    if (info.role == TensorInfo::Role::momentum) continue;
    job["tensors"].push_back({{"name", info.name}, {"shape", info.shape}, {"role", role_name(info.role)}});
    write_values(folder, "state." + info.name, read(*engine, info.name));
  }
  write_values(folder, "images", batch.images);
  write_values(folder, "labels", batch.labels);
  write_values(folder, "other_labels", batch.other_labels);
  write_values(folder, "own_weights", batch.own_weights);
  write_values(folder, "tokens", batch.tokens);
  write_values(folder, "targets", batch.targets);
  const BatchResult evaluated = engine->evaluate_batch(), trained = engine->train_batch(17, nullptr);
  job["evaluation loss"] = evaluated.loss_sum;
  job["training loss"] = trained.loss_sum;
  job["training generator loss"] = trained.generator_loss_sum;
  job["evaluation generator loss"] = evaluated.generator_loss_sum;
  for (const auto& [name, gradient] : gradients_of(*engine))
    write_values(folder, "gradient." + name, std::vector<float>(gradient.begin(), gradient.end()));
  for (const TensorInfo& info : engine->tensors())
    if (info.role == TensorInfo::Role::statistic)
      write_values(folder, "after." + info.name, read(*engine, info.name));
  take_steps(*engine, sgd_steps, folder, job);
  write_dropout_mask(folder, graph, rows, precision);
  write_noise(folder, graph, rows);
  std::ofstream(folder.path / "graph.json") << to_text(job);
  const Result<bool> agrees = PyTorch::agrees(folder.path.string(), tolerance);
  REQUIRE_MESSAGE(agrees, (agrees ? "" : agrees.error().text()));
  CHECK(*agrees);
}

}  // namespace dlrun::runtime::test
