// test-cuda: the GPU's engine against the CPU's: each operator in a small graph, then whole models. Both
// start from the same values and see the same batch. One update with rate 1 and no momentum shows the
// gradient as what a parameter lost. Needs a GPU: without one it fails, and says so.
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "runtime/base/keyed_random.hpp"
#include "runtime/graph/cpu_engine.hpp"
#include "runtime/graph/cuda/cuda_engine.hpp"
#include "runtime/models/models.hpp"

namespace {

using namespace dlrun;
using namespace dlrun::runtime;

// Largest allowed |gpu - cpu| / |cpu| in the Euclidean norm, of a loss and of a tensor.
struct Tolerance {
  double loss, tensor;
};
// What is allowed everywhere. Beyond it a tensor may be as far off as the CPU itself moves, times kNoise,
// when its arithmetic is disturbed as much: in f32 by inputs off by 1e-6 or so (a ReLU near zero flips, and a
// bias before a batch norm has a gradient of nothing but rounding), in bf16 by computing in f32 instead.
constexpr Tolerance kF32{1e-5, 2e-5}, kBf16{2e-2, 2e-2};
constexpr double kNoise = 4;

struct Case {
  std::string name;
  InputShape input;
  Result<Graph> (*build)(const InputShape&);
  double deep = 1;  // factor on the loss in evaluation, after an update by raw gradients
  // A deep net has millions of ReLUs, and one whose input is 0 but for rounding may fall to the other side:
  // the CPU's own noise shows that only where it is disturbed by more. Its update is small, else nothing sane
  // is left to evaluate.
  double disturbance = 1e-6;
  float rate = 1;
};

template <class Body>
Result<Graph> graph_of(const InputShape& input, const Body& body) {
  GraphBuilder g("case", input);
  Value x = body(g, g.convolution("first", g.input(), {.filters = 16, .kernel = 3, .padding = 1}));
  x = g.fully_connected("last", x, input.classes);
  g.softmax_cross_entropy(x);
  return std::move(g).finish();
}

const std::vector<Case>& cases() {
  static const InputShape small{3, 12, 12, 7};
  static const std::vector<Case> all = {
      {"convolution 3x3", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x, {.filters = 24, .kernel = 3, .padding = 1});
         });
       }},
      {"convolution 3x3 stride 2", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x,
                                {.filters = 8, .kernel = 3, .stride = 2, .padding = 1, .bias = Bias::none});
         });
       }},
      {"convolution 1x1 stride 2 relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.relu(g.convolution("c", x, {.filters = 8, .kernel = 1, .stride = 2}));
         });
       }},
      {"max pool", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.max_pool(x, {.window = 3, .stride = 2, .padding = 1});
         });
       }},
      {"max pool after relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.max_pool(g.relu(x), {}); });
       }},
      {"average pool", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.global_average_pool(x); });
       }},
      {"batch norm", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.batch_norm("bn", x); });
       }},
      {"batch norm relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.relu(g.batch_norm("bn", x)); });
       }},
      {"batch norm of 5 channels", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.batch_norm("bn", g.convolution("c", x, {.filters = 5, .kernel = 1}));
         });
       }},
      {"add relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.relu(g.add(x, g.convolution("c", x, {.filters = 16, .kernel = 3, .padding = 1})));
         });
       }},
      {"relu of two readers", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(g.relu(x), g.convolution("c", x, {.filters = 16, .kernel = 1}));
         });
       }},
      {"sum of two batch norms", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value left = g.batch_norm("left", g.convolution("l", x, {.filters = 16, .kernel = 1}));
           return g.relu(
               g.add(left, g.batch_norm("right", g.convolution("r", x, {.filters = 16, .kernel = 1}))));
         });
       }},
      {"batch norm added to a value with another reader", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value sum =
               g.add(x, g.batch_norm("bn", g.convolution("c", x, {.filters = 16, .kernel = 1})));
           return g.add(sum, g.convolution("d", g.relu(sum), {.filters = 16, .kernel = 1}));
         });
       }},
      {"stem 7x7 stride 2",
       {3, 30, 29, 7},
       [](const InputShape& in) {
         GraphBuilder g("case", in);
         Value x = g.convolution("stem", g.input(),
                                 {.filters = 16, .kernel = 7, .stride = 2, .padding = 3, .bias = Bias::none});
         x = g.max_pool(g.relu(g.batch_norm("bn", x)), {.window = 3, .stride = 2, .padding = 1});
         g.softmax_cross_entropy(g.fully_connected("last", x, in.classes));
         return std::move(g).finish();
       }},
      {"stem 3x3 stride 2",
       {3, 30, 29, 7},
       [](const InputShape& in) {
         GraphBuilder g("case", in);
         const Value x = g.convolution(
             "stem", g.input(), {.filters = 16, .kernel = 3, .stride = 2, .padding = 0, .bias = Bias::none});
         g.softmax_cross_entropy(g.fully_connected("last", g.batch_norm("bn", x), in.classes));
         return std::move(g).finish();
       }},
      {"dropout", small,
       [](const InputShape& in) {
         return graph_of(
             in, [](GraphBuilder& g, Value x) { return g.dropout(g.fully_connected("f", x, 64), 0.3F); });
       }},
      {"mnist-cnn", {1, 28, 28, 10}, mnist_cnn},
      {"resnet18-cifar", {3, 32, 32, 10}, resnet18_cifar, 10},
      {"resnet34", {3, 64, 64, 10}, resnet34, 10, 1e-4, 0x1p-8F},
      {"resnet50", {3, 64, 64, 10}, resnet50, 10, 1e-4, 0x1p-8F},
  };
  return all;
}

void fill(Engine& engine, std::uint64_t batch_number, double disturbance = 0) {
  const std::span<float> rows = engine.input();
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<float>(mix(batch_number, i) >> 40) * 0x1p-24F * 2 - 1;
  for (std::size_t i = 0; i < rows.size() && disturbance > 0; ++i)
    rows[i] *= static_cast<float>(1 + disturbance * (mix(batch_number + 1, i) % 2 == 0 ? 1 : -1));
  const std::span<std::int32_t> labels = engine.labels();
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = i + 1 == labels.size() ? -1 : static_cast<std::int32_t>(mix(batch_number, i + 77) % 7);
}

double distance(std::span<const float> left, std::span<const float> right, double floor) {
  double off = 0, size = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    off += (static_cast<double>(left[i]) - right[i]) * (static_cast<double>(left[i]) - right[i]);
    size += static_cast<double>(left[i]) * left[i];
  }
  return std::sqrt(off) / std::max(std::sqrt(size), floor);
}

int failures = 0;
void expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  fmt::print("  FAILED: {}\n", what);
}

void compare_loss(const BatchResult& cpu, const BatchResult& gpu, double allowed, const std::string& where) {
  const double off = std::abs(cpu.loss_sum - gpu.loss_sum) / std::max(std::abs(cpu.loss_sum), 1e-3);
  expect(off <= allowed,
         fmt::format("{}: loss {} on the CPU, {} on the GPU", where, cpu.loss_sum, gpu.loss_sum));
}

// All tensors; what a parameter lost is its gradient. The worst distance as a share of what is allowed.
Result<double> compare_tensors(const Engine& cpu, const Engine& disturbed, const Engine& gpu,
                               const std::vector<std::vector<float>>& before, double allowed) {
  double worst = 0;
  for (std::size_t i = 0; i < cpu.tensors().size(); ++i) {
    const TensorInfo& info = cpu.tensors()[i];
    std::vector<float> left(info.elements()), right(info.elements()), other(info.elements());
    TRY(cpu.read_tensor(i, left));
    TRY(gpu.read_tensor(i, right));
    TRY(disturbed.read_tensor(i, other));
    if (info.role == TensorInfo::Role::parameter)
      for (std::size_t k = 0; k < left.size(); ++k)
        left[k] -= before[i][k], right[k] -= before[i][k], other[k] -= before[i][k];
    const double off = distance(left, right, 1e-6), noise = distance(left, other, 1e-6);
    const double limit = std::max(allowed, kNoise * noise);
    worst = std::max(worst, off / limit);
    expect(off <= limit,
           fmt::format("{}: {:.2e} apart, allowed {:.2e} (noise {:.2e})", info.name, off, limit, noise));
  }
  return worst;
}

Result<void> run(const CudaLibrary& library, const Case& of, Precision precision) {
  const EngineOptions options{.batch = 16, .precision = precision, .seed = 3};
  const Tolerance allowed = precision == Precision::f32 ? kF32 : kBf16;
  const auto cpu = TRY(compile(TRY(of.build(of.input)), options));
  EngineOptions plain = options;
  plain.precision = Precision::f32;
  const auto disturbed = TRY(compile(TRY(of.build(of.input)), plain));
  fill(*disturbed, 1, precision == Precision::f32 ? of.disturbance : 0);
  disturbed->train_batch(5, {});
  disturbed->apply({.learning_rate = of.rate});
  const auto gpu = TRY(compile_cuda(library, TRY(of.build(of.input)), options, 0));
  expect(cpu->tensors().size() == gpu->tensors().size(), "as many tensors");
  std::vector<std::vector<float>> before;
  for (std::size_t i = 0; i < cpu->tensors().size(); ++i) {
    expect(cpu->tensors()[i].name == gpu->tensors()[i].name &&
               cpu->tensors()[i].shape == gpu->tensors()[i].shape,
           "the same tensor " + cpu->tensors()[i].name);
    before.emplace_back(cpu->tensors()[i].elements());
    std::vector<float> there(before.back().size());
    TRY(cpu->read_tensor(i, before.back()));
    TRY(gpu->read_tensor(i, there));
    expect(there == before.back(), "the same first values of " + cpu->tensors()[i].name);
  }
  fill(*cpu, 1), fill(*gpu, 1);
  compare_loss(cpu->train_batch(5, {}), gpu->train_batch(5, {}), allowed.loss, "step 1");
  cpu->apply({.learning_rate = of.rate}), gpu->apply({.learning_rate = of.rate});
  const double worst = TRY(compare_tensors(*cpu, *disturbed, *gpu, before, allowed.tensor));
  compare_loss(cpu->evaluate_batch(), gpu->evaluate_batch(), allowed.loss * 20 * of.deep, "evaluation");
  // From the CPU's state, twice more, now as a graph: the same bits from the same state.
  for (std::size_t i = 0; i < before.size(); ++i) TRY(gpu->write_tensor(i, before[i]));
  const BatchResult again = gpu->train_batch(5, {});
  for (std::size_t i = 0; i < before.size(); ++i) TRY(gpu->write_tensor(i, before[i]));
  const BatchResult third = gpu->train_batch(5, {});
  expect(again.loss_sum == third.loss_sum,
         fmt::format("repeats its bits: {} {}", again.loss_sum, third.loss_sum));
  TRY(gpu->status());
  fmt::print("{} {}: worst tensor at {:.0f} % of its limit, {} KiB\n",
             precision == Precision::f32 ? "f32 " : "bf16", of.name, 100 * worst, gpu->memory_bytes() >> 10);
  return {};
}

}  // namespace

int main() {
  const auto library = CudaLibrary::open();
  if (!library) {
    fmt::print("no GPU here: {}\n", library.error().text());
    return 1;
  }
  fmt::print("on {}\n", library->device_name(0));
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const Case& of : cases())
      if (const auto done = run(*library, of, precision); !done) {
        ++failures;
        fmt::print("  FAILED: {}: {}\n", of.name, done.error().text());
      }
  fmt::print("{} failures\n", failures);
  return failures == 0 ? 0 : 1;
}
