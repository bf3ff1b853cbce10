// Optimizers on a GPU: five updates of a small net against the CPU's. Then one by Adam against its own
// numbers: what the mean gained tells the gradient, and with that the rest is known.
#include <algorithm>
#include <cmath>

#include "compare.hpp"
#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/graph/label_smoothing.hpp"
#include "runtime/optim/adam.hpp"

namespace dlrun::runtime::gpu {

namespace {

constexpr int kUpdates = 5;
constexpr InputShape kShape{3, 12, 12, 7};

Optimizer adam() {
  return {find_optimizer("adam"), {0.8, 0.99, 1e-6}};
}

UpdateStep update(int number) {
  return {.learning_rate = 0.01F,
          .weight_decay = 0.1F,
          .gradient_scale = 0.5F,
          .updates = static_cast<std::uint64_t>(number)};
}

// Nothing in it has a gradient of nothing but rounding, which Adam would blow up: no bias before the norm.
Result<Graph> net() {
  GraphBuilder g("optimizers", kShape);
  Value x = g.convolution("c", g.input(), {.filters = 16, .kernel = 3, .bias = Bias::none});
  x = g.tanh(g.batch_norm("bn", x));
  g.softmax_cross_entropy(g.fully_connected("last", x, kShape.classes));
  return std::move(g).finish();
}

EngineOptions options(Precision precision, const Optimizer& optimizer, const NoDecay& no_decay) {
  return {.batch = 16,
          .precision = precision,
          .seed = 3,
          .optimizer = optimizer,
          .no_decay = no_decay,
          .average = 0.7F};
}

void train(Engine& engine, double disturbance) {
  for (int step = 0; step < kUpdates; ++step) {
    fill(engine, static_cast<std::uint64_t>(step), kShape.classes, disturbance);
    engine.train_batch(static_cast<std::uint64_t>(step), {});
    engine.apply(update(step));
  }
}

Result<std::vector<float>> read(const Engine& engine, const std::string& name) {
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    if (engine.tensors()[i].name != name) continue;
    std::vector<float> out(engine.tensors()[i].elements());
    TRY(engine.read_tensor(i, out));
    return out;
  }
  return fail(ErrorKind::internal, "there is no tensor '{}'", name);
}

struct AdamState {
  std::vector<float> value, mean, square;
};
Result<AdamState> adam_state_of(const Engine& engine, const std::string& name) {
  return AdamState{TRY(read(engine, name)), TRY(read(engine, name + ".exp_avg")),
                   TRY(read(engine, name + ".exp_avg_sq"))};
}

// One number, from before to after.
void follow(const AdamFactors& by, const AdamState& before, const AdamState& after, std::size_t i,
            AdamState& wanted) {
  const double gradient =
      (static_cast<double>(after.mean[i]) - static_cast<double>(by.beta1) * before.mean[i]) / (1 - by.beta1);
  const double square = by.beta2 * before.square[i] + (1 - by.beta2) * gradient * gradient;
  wanted.square.push_back(static_cast<float>(square));
  wanted.value.push_back(static_cast<float>(
      before.value[i] - by.rate * after.mean[i] / (std::sqrt(square) * by.correction2 + by.epsilon)));
}

Result<void> check_one_update(Engine& engine, const std::string& name) {
  const AdamState before = TRY(adam_state_of(engine, name));
  engine.train_batch(kUpdates, {});
  engine.apply(update(kUpdates));
  const AdamState after = TRY(adam_state_of(engine, name));
  AdamState wanted;
  const auto by = named_factors<AdamFactors>(adam().factors(update(kUpdates)).data());
  for (std::size_t i = 0; i < before.value.size(); ++i) follow(by, before, after, i, wanted);
  const double square = distance(wanted.square, after.square, 1e-12),
               value = distance(wanted.value, after.value, 1e-12);
  expect(square < 1e-4, fmt::format("adam: squares of {} are {:.2e} off their rule", name, square));
  expect(value < 1e-5, fmt::format("adam: {} is {:.2e} off its rule", name, value));
  expect(distance(before.value, after.value, 1e-12) > 1e-4, fmt::format("adam: {} was updated", name));
  return {};
}

// A number whose gradient is nearly 0 goes one way or the other by the sign of noise: so the noise of the
// CPU's own arithmetic is the measure. The engine on the GPU as it is then.
Result<std::unique_ptr<CudaEngine>> compare_updates(const CudaLibrary& library, Precision precision,
                                                    const Optimizer& optimizer, const NoDecay& no_decay) {
  const bool by_hand = precision == Precision::f32;
  const auto on_cpu = [&](Precision how) -> Result<std::unique_ptr<CpuEngine>> {
    return compile(TRY(net()), options(how, optimizer, no_decay));
  };
  const auto cpu = TRY(on_cpu(precision == Precision::bf16 ? Precision::bf16 : Precision::f32));
  const auto disturbed = TRY(on_cpu(precision == Precision::tf32 ? Precision::bf16 : Precision::f32));
  auto gpu = TRY(compile_cuda(library, TRY(net()), options(precision, optimizer, no_decay), 0));
  const std::string name = fmt::format("{}, no decay of {}", optimizer.identity(), no_decay.text());
  const std::vector<float> first = TRY(read(*cpu, "c.weight"));
  train(*cpu, 0), train(*gpu, 0), train(*disturbed, by_hand ? 1e-6 : 0);
  for (const TensorInfo& info : cpu->tensors()) {
    const std::vector<float> left = TRY(read(*cpu, info.name)), right = TRY(read(*gpu, info.name)),
                             other = TRY(read(*disturbed, info.name));
    const double off = distance(left, right, 1e-9), noise = distance(left, other, 1e-9);
    const double limit = std::max(by_hand ? 1e-4 : 2e-2, 4 * noise);
    expect(off <= limit, fmt::format("{}: {} is {:.2e} apart, allowed {:.2e}", name, info.name, off, limit));
  }
  expect(distance(first, TRY(read(*gpu, "c.weight")), 1e-9) > 1e-3, name + ": the weights have moved");
  const std::vector<float> averages = TRY(read(*gpu, "c.weight.ema"));
  gpu->swap_averages();
  expect(TRY(read(*gpu, "c.weight")) == averages, name + ": the averages take the place of the weights");
  gpu->swap_averages();
  fmt::print("{} {}: {} updates as the CPU's\n", name_of(precision), name, kUpdates);
  return gpu;
}

// Three updates of two batches each: plainly, then captured. The CPU's arena is added up by hand.
Result<void> compare_accumulation(const CudaLibrary& library, Precision precision) {
  EngineOptions how = options(precision, momentum_sgd(0.9), {});
  const auto cpu = TRY(compile(TRY(net()), how));
  how.accumulate = 2;
  const auto gpu = TRY(compile_cuda(library, TRY(net()), how, 0));
  DeviceAccumulating* const device = gpu->accumulating();
  if (device == nullptr) return fail(ErrorKind::internal, "the engine on the GPU does not accumulate");
  for (std::uint64_t step = 0; step < 6; step += 2) {
    std::vector<float> first;
    for (const std::uint64_t batch : {step, step + 1}) {
      device->set_batch(batch == step ? DeviceAccumulating::Batch::earlier : DeviceAccumulating::Batch::last);
      for (Engine* engine : {static_cast<Engine*>(cpu.get()), static_cast<Engine*>(gpu.get())}) {
        fill(*engine, batch, kShape.classes, 0);
        engine->train_batch(batch, {});
      }
      const std::span<float> arena = cpu->gradients();
      for (std::size_t i = 0; i < first.size(); ++i) arena[i] += first[i];
      first.assign(arena.begin(), arena.end());
    }
    cpu->apply(update(0)), gpu->apply(update(0));
  }
  const double allowed = precision == Precision::f32 ? 1e-4 : 2e-2;
  for (const TensorInfo& info : cpu->tensors()) {
    const double off = distance(TRY(read(*cpu, info.name)), TRY(read(*gpu, info.name)), 1e-9);
    expect(off <= allowed,
           fmt::format("accumulated: {} is {:.2e} apart, allowed {:.2e}", info.name, off, allowed));
  }
  return gpu->status();
}

// Smoothed and mixed labels: the loss, and three updates by it.
Result<void> compare_targets(const CudaLibrary& library, Precision precision) {
  EngineOptions how = options(precision, momentum_sgd(0.9), {});
  how.labels = Labels::mixed;
  Graph graph = TRY(net());
  TRY(smooth_labels(graph, 0.1));
  const auto cpu = TRY(compile(graph, how));
  const auto gpu = TRY(compile_cuda(library, std::move(graph), how, 0));
  const double allowed = precision == Precision::f32 ? 1e-4 : 2e-2;
  for (std::uint64_t step = 0; step < 3; ++step) {
    double losses[2] = {};
    for (const int which : {0, 1}) {
      Engine& engine = which == 0 ? static_cast<Engine&>(*cpu) : *gpu;
      fill(engine, step, kShape.classes, 0);
      const MixedLabels mixed = engine.mixed_labels();
      for (std::size_t row = 0; row < mixed.labels.size(); ++row) {
        mixed.labels[row] = static_cast<std::int32_t>(row % static_cast<std::size_t>(kShape.classes));
        mixed.own_weights[row] = static_cast<float>(row % 5) / 4;
      }
      losses[which] = engine.train_batch(step, {}).loss_sum;
      engine.apply(update(static_cast<int>(step)));
    }
    expect(std::abs(losses[0] - losses[1]) <= allowed * losses[0],
           fmt::format("targets: the losses are {} and {}", losses[0], losses[1]));
  }
  for (const TensorInfo& info : cpu->tensors()) {
    const double off = distance(TRY(read(*cpu, info.name)), TRY(read(*gpu, info.name)), 1e-9);
    expect(off <= allowed,
           fmt::format("targets: {} is {:.2e} apart, allowed {:.2e}", info.name, off, allowed));
  }
  return gpu->status();
}

}  // namespace

namespace {

// What all parameters lose in a step of plain gradients whose norm is limited; 0: it is not. The engine is as
// it was afterwards: another one may time other algorithms to be the fastest, which have other bits.
Result<std::vector<float>> lost(Engine& engine, float limit) {
  std::vector<std::vector<float>> before;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i)
    TRY(engine.read_tensor(i, before.emplace_back(engine.tensors()[i].elements())));
  fill(engine, 1, kShape.classes);
  engine.train_batch(0, {});
  engine.apply({.learning_rate = 4, .gradient_scale = 0.5F, .clip_norm = limit});
  std::vector<float> out;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    std::vector<float> after(before[i].size());
    TRY(engine.read_tensor(i, after));
    TRY(engine.write_tensor(i, before[i]));
    for (std::size_t k = 0; engine.tensors()[i].role == TensorInfo::Role::parameter && k < after.size(); ++k)
      out.push_back(before[i][k] - after[k]);
  }
  TRY(engine.status());
  return out;
}

// A limit of half the norm halves every gradient, one of twice the norm changes none.
Result<void> compare_clipping(const CudaLibrary& library, Precision precision) {
  const auto engine = TRY(compile_cuda(library, TRY(net()), options(precision, momentum_sgd(0), {}), 0));
  const std::vector<float> free = TRY(lost(*engine, 0));
  double squares = 0;
  for (const float one : free) squares += static_cast<double>(one) * one;
  const auto norm = static_cast<float>(std::sqrt(squares) / 4);
  std::vector<float> half = TRY(lost(*engine, norm / 2));
  for (float& one : half) one *= 2;
  expect(distance(free, half, 1e-6) < 1e-4,
         fmt::format("clipped to half: {:.1e} apart", distance(free, half, 1e-6)));
  expect(TRY(lost(*engine, norm * 2)) == free, "a limit above the norm changes nothing");
  return {};
}

}  // namespace

Result<void> compare_optimizers(const CudaLibrary& library, Precision precision) {
  if (precision != Precision::tf32) TRY(compare_accumulation(library, precision));
  TRY(compare_clipping(library, precision));
  if (precision != Precision::tf32) TRY(compare_targets(library, precision));
  const NoDecay some{.vectors = NoDecay::Vectors::exempt, .names = {"c.weight"}};
  TRY(compare_updates(library, precision, {find_optimizer("sgd"), {0.9, 1}}, {}));
  for (const char* name : {"sgd", "adamw", "lamb"})
    TRY(compare_updates(library, precision, default_optimizer(name), some));
  TRY(compare_updates(library, precision, {find_optimizer("lars"), {0.9, 0.5}},
                      some));  // by default it creeps
  for (const OptimizerTraits* traits : optimizers()) {
    Optimizer optimizer = default_optimizer(traits->name);
    if (traits->name == "adam") optimizer = adam();
    if (traits->name == "lars") optimizer = {traits, {0.9, 0.5}};
    const auto gpu = TRY(compare_updates(library, precision, optimizer, {}));
    if (traits->name == "adam")
      for (const char* name : {"c.weight", "bn.weight", "last.bias"}) TRY(check_one_update(*gpu, name));
    TRY(gpu->status());
  }
  return {};
}

}  // namespace dlrun::runtime::gpu
