// See compare.hpp.
#include "compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "runtime/base/keyed_random.hpp"
#include "runtime/cpu/cpu_engine.hpp"

namespace dlrun::runtime::gpu {

namespace {

// Largest allowed |gpu - cpu| / |cpu| in the Euclidean norm, of a loss and of a tensor.
struct Tolerance {
  double loss, tensor;
};
// What is allowed everywhere. Beyond it a tensor may be as far off as the CPU itself moves, times kNoise,
// when its arithmetic is disturbed as much: in f32 by inputs off by 1e-6 or so (a ReLU near zero flips, and a
// bias before a batch norm has a gradient of nothing but rounding), in bf16 by computing in f32 instead; in
// tf32 by bf16, which rounds four times as coarsely.
constexpr Tolerance kF32{1e-5, 2e-5}, kTf32{2e-3, 2e-2}, kBf16{2e-2, 2e-2};
constexpr double kNoise = 4;

int wrong = 0;

double size_of(std::span<const float> values) {
  double size = 0;
  for (const float value : values) size += static_cast<double>(value) * value;
  return std::sqrt(size);
}

double off_by(double left, double right) {
  return std::abs(left - right) / std::max(std::abs(left), 1e-3);
}

// `noise`: what the CPU's own losses are apart.
void compare_loss(const BatchResult& cpu, const BatchResult& gpu, const BatchResult& noise, double allowed,
                  const std::string& where) {
  const auto check = [&](const char* what, double left, double right, double other) {
    expect(off_by(left, right) <= std::max(allowed, kNoise * off_by(left, other)),
           fmt::format("{}: {} {} on the CPU, {} on the GPU", where, what, left, right));
  };
  check("loss", cpu.loss_sum, gpu.loss_sum, noise.loss_sum);
  check("the generator's loss", cpu.generator_loss_sum, gpu.generator_loss_sum, noise.generator_loss_sum);
  const TargetSums &left = cpu.target_sums, &right = gpu.target_sums, &other = noise.target_sums;
  check("absolute error", left.absolute, right.absolute, other.absolute);
  check("root of the squared error", std::sqrt(left.squared), std::sqrt(right.squared),
        std::sqrt(other.squared));
}

Tolerance allowed_in(Precision precision) {
  if (precision == Precision::tf32) return kTf32;
  return precision == Precision::bf16 ? kBf16 : kF32;
}

// An engine and its state before the step.
struct Subject {
  Engine& engine;
  std::vector<std::vector<float>> before = {};
};

Result<std::vector<std::vector<float>>> state_of(const Engine& engine) {
  std::vector<std::vector<float>> state;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i)
    TRY(engine.read_tensor(i, state.emplace_back(engine.tensors()[i].elements())));
  return state;
}

Result<void> set_state(Engine& engine, const std::vector<std::vector<float>>& state) {
  for (std::size_t i = 0; i < state.size(); ++i) TRY(engine.write_tensor(i, state[i]));
  return {};
}

// What a generator makes does not depend on the batch: it is disturbed by its weights.
Result<void> disturb_weights(Engine& engine, double by) {
  std::vector<std::vector<float>> state = TRY(state_of(engine));
  for (std::size_t i = 0; i < state.size(); ++i)
    for (std::size_t k = 0; k < state[i].size(); ++k)
      if (engine.tensors()[i].role == TensorInfo::Role::parameter)
        state[i][k] *= static_cast<float>(1 + by * (mix(i, k) % 2 == 0 ? 1 : -1));
  return set_state(engine, state);
}

// What it holds now; of a parameter what it lost.
Result<std::vector<float>> seen(const Subject& subject, std::size_t tensor) {
  const TensorInfo& info = subject.engine.tensors()[tensor];
  std::vector<float> out(info.elements());
  TRY(subject.engine.read_tensor(tensor, out));
  for (std::size_t k = 0; k < out.size() && info.role == TensorInfo::Role::parameter; ++k)
    out[k] -= subject.before[tensor][k];
  return out;
}

// All tensors. The worst distance as a share of what is allowed.
Result<double> compare_tensors(const Subject& cpu, const Subject& disturbed, const Subject& gpu,
                               double allowed) {
  double worst = 0;
  for (std::size_t i = 0; i < cpu.engine.tensors().size(); ++i) {
    const TensorInfo& info = cpu.engine.tensors()[i];
    const std::vector<float> left = TRY(seen(cpu, i)), right = TRY(seen(gpu, i)),
                             other = TRY(seen(disturbed, i));
    // A small gradient is seen in what a parameter lost only as finely as the parameter itself is stored.
    const double stored = info.role == TensorInfo::Role::parameter ? size_of(cpu.before[i]) : 0;
    const double off = distance(left, right, 1e-6), noise = distance(left, other, 1e-6);
    const double grain = 0x1p-23 * stored / std::max(size_of(left), 1e-6);
    const double limit = std::max({allowed, kNoise * noise, grain});
    worst = std::max(worst, off / limit);
    expect(off <= limit,
           fmt::format("{}: {:.2e} apart, allowed {:.2e} (noise {:.2e})", info.name, off, limit, noise));
  }
  return worst;
}

// The images of a GAN's generator, as it is now.
Result<void> compare_images(Engine& cpu, Engine& disturbed, Engine& gpu, const InputShape& shape,
                            double allowed) {
  if (cpu.gan() == nullptr) return {};
  const auto count = static_cast<std::size_t>(cpu.batch() * shape.channels * shape.height * shape.width);
  std::vector<float> left(count), right(count), other(count);
  TRY(cpu.gan()->generate(left));
  TRY(gpu.gan()->generate(right));
  TRY(disturbed.gan()->generate(other));
  const double off = distance(left, right, 1e-6);
  const double limit = std::max(allowed, kNoise * distance(left, other, 1e-6));
  expect(off <= limit, fmt::format("images: {:.2e} apart, allowed {:.2e}", off, limit));
  return {};
}

void compare_first_values(const Subject& cpu, const Subject& gpu) {
  expect(cpu.engine.tensors().size() == gpu.engine.tensors().size(), "as many tensors");
  for (std::size_t i = 0; i < cpu.before.size() && i < gpu.before.size(); ++i) {
    const TensorInfo &left = cpu.engine.tensors()[i], &right = gpu.engine.tensors()[i];
    expect(left.name == right.name && left.shape == right.shape, "the same tensor " + left.name);
    expect(cpu.before[i] == gpu.before[i], "the same first values of " + left.name);
  }
}

struct Stepped {
  BatchResult loss;
  std::vector<std::vector<float>> after;  // an update
};
Result<Stepped> step_from(Engine& gpu, const std::vector<std::vector<float>>& state, float rate) {
  TRY(set_state(gpu, state));
  const BatchResult loss = gpu.train_batch(5, {});
  gpu.apply({.learning_rate = rate});
  return Stepped{loss, TRY(state_of(gpu))};
}

// From one state, twice, as a graph: the same bits, also of every gradient.
Result<void> compare_repetition(Engine& gpu, const std::vector<std::vector<float>>& state, float rate) {
  const auto again = TRY(step_from(gpu, state, rate)), third = TRY(step_from(gpu, state, rate));
  expect(again.loss.loss_sum == third.loss.loss_sum &&
             again.loss.generator_loss_sum == third.loss.generator_loss_sum,
         fmt::format("repeats its bits: {} {}", again.loss.loss_sum, third.loss.loss_sum));
  for (std::size_t i = 0; i < state.size(); ++i)
    expect(std::memcmp(again.after[i].data(), third.after[i].data(), state[i].size() * sizeof(float)) == 0,
           "repeats the bits of " + gpu.tensors()[i].name);
  return gpu.status();
}

// A number near zero may fall to the other side.
void compare_answers(const BatchResult& cpu, const BatchResult& gpu) {
  expect(std::abs(cpu.correct - gpu.correct) <= 1,
         fmt::format("{} right answers on the CPU, {} on the GPU", cpu.correct, gpu.correct));
  const TargetSums &left = cpu.target_sums, &right = gpu.target_sums;
  expect(std::abs(left.found - right.found) <= 1 && std::abs(left.marked - right.marked) <= 1,
         fmt::format("{} labels found of {} on the CPU, {} of {} on the GPU", left.found, left.marked,
                     right.found, right.marked));
}

void step(Subject& subject, const Case& of, double disturbance, BatchResult& result) {
  fill(subject.engine, 1, of.input.classes, disturbance);
  result = subject.engine.train_batch(5, {});
  subject.engine.apply({.learning_rate = of.rate});
}

}  // namespace

void expect(bool right, const std::string& what) {
  if (right) return;
  ++wrong;
  fmt::print("  FAILED: {}\n", what);
}
int failures() {
  return wrong;
}

std::string name_of(Precision precision) {
  if (precision == Precision::tf32) return "tf32";
  return precision == Precision::bf16 ? "bf16" : "f32 ";
}

namespace {

// Tokens cannot be disturbed; the last row does not count.
void fill_tokens(Engine& engine, std::uint64_t batch_number, std::int64_t vocabulary) {
  const std::span<std::int32_t> tokens = engine.tokens(), labels = engine.labels();
  const std::size_t last_row = tokens.size() - tokens.size() / static_cast<std::size_t>(engine.batch());
  const auto among = static_cast<std::uint64_t>(vocabulary);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    // Half of them are one token, as a blank is in a text.
    tokens[i] =
        mix(batch_number, i) % 2 == 0 ? 3 : static_cast<std::int32_t>(below(mix(batch_number, i, 1), among));
    labels[i] = i >= last_row ? -1 : static_cast<std::int32_t>(below(mix(batch_number, i, 2), among));
  }
}

}  // namespace

void fill(Engine& engine, std::uint64_t batch_number, std::int64_t classes, double disturbance) {
  if (!engine.tokens().empty()) return fill_tokens(engine, batch_number, classes);
  const std::span<float> rows = engine.input();
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<float>(mix(batch_number, i) >> 40) * 0x1p-24F * 2 - 1;
  for (std::size_t i = 0; i < rows.size() && disturbance > 0; ++i)
    rows[i] *= static_cast<float>(1 + disturbance * (mix(batch_number + 1, i) % 2 == 0 ? 1 : -1));
  const std::span<float> targets = engine.targets();
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets[i] = static_cast<float>(mix(batch_number, i + 55) >> 40) * 0x1p-24F;
  const std::span<std::int32_t> labels = engine.labels();
  const auto among = static_cast<std::uint64_t>(std::min<std::int64_t>(classes, 7));
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = i + 1 == labels.size() ? -1 : static_cast<std::int32_t>(mix(batch_number, i + 77) % among);
}

double distance(std::span<const float> left, std::span<const float> right, double floor) {
  double off = 0, size = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    off += (static_cast<double>(left[i]) - right[i]) * (static_cast<double>(left[i]) - right[i]);
    size += static_cast<double>(left[i]) * left[i];
  }
  return std::sqrt(off) / std::max(std::sqrt(size), floor);
}

Result<void> compare(const CudaLibrary& library, const Case& of, Precision precision) {
  const Tolerance allowed = allowed_in(precision);
  const auto on_cpu = [&](Precision how) -> Result<std::unique_ptr<CpuEngine>> {
    return TRY(compile(TRY(of.build(of.input)), {.batch = of.batch, .precision = how, .seed = 3}));
  };
  const auto cpu_engine = TRY(on_cpu(precision == Precision::bf16 ? Precision::bf16 : Precision::f32));
  const auto disturbed_engine = TRY(on_cpu(precision == Precision::tf32 ? Precision::bf16 : Precision::f32));
  const auto build = of.on_gpu == nullptr ? of.build : of.on_gpu;
  const auto gpu_engine = TRY(
      compile_cuda(library, TRY(build(of.input)), {.batch = of.batch, .precision = precision, .seed = 3}, 0));
  const bool by_hand = precision == Precision::f32;  // else the other precision disturbs enough
  const bool by_weights = disturbed_engine->gan() != nullptr || disturbed_engine->language() != nullptr;
  if (by_hand && by_weights) TRY(disturb_weights(*disturbed_engine, of.disturbance));
  Subject cpu{*cpu_engine, TRY(state_of(*cpu_engine))}, gpu{*gpu_engine, TRY(state_of(*gpu_engine))},
      disturbed{*disturbed_engine, TRY(state_of(*disturbed_engine))};
  compare_first_values(cpu, gpu);
  TRY(compare_images(cpu.engine, disturbed.engine, gpu.engine, of.input, allowed.tensor));
  BatchResult left, right, other;
  step(cpu, of, 0, left), step(gpu, of, 0, right), step(disturbed, of, by_hand ? of.disturbance : 0, other);
  compare_loss(left, right, other, allowed.loss, "step 1");
  const double worst = TRY(compare_tensors(cpu, disturbed, gpu, allowed.tensor));
  const BatchResult evaluated = cpu.engine.evaluate_batch();
  compare_loss(evaluated, gpu.engine.evaluate_batch(), evaluated, allowed.loss * 20 * of.deep, "evaluation");
  if (by_hand) compare_answers(left, right);
  TRY(compare_repetition(gpu.engine, cpu.before, of.rate));
  fmt::print("{} {}: worst tensor at {:.0f} % of its limit, {} KiB\n", name_of(precision), of.name,
             100 * worst, gpu.engine.memory_bytes() >> 10);
  return {};
}

}  // namespace dlrun::runtime::gpu
