// test-cuda: the GPU's engine against the CPU's: each operator in a small graph, then whole models. Both
// start from the same values and see the same batch. One update with rate 1 and no momentum shows the
// gradient as what a parameter lost. Needs a GPU: without one it fails, and says so. An argument chooses the
// cases whose names hold it.
#include <algorithm>
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
// bias before a batch norm has a gradient of nothing but rounding), in bf16 by computing in f32 instead; in
// tf32 by bf16, which rounds four times as coarsely.
constexpr Tolerance kF32{1e-5, 2e-5}, kTf32{2e-3, 2e-2}, kBf16{2e-2, 2e-2};
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
  std::int64_t batch = 16;
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
      {"convolution 1x7", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x, {.filters = 24, .kernel = 1, .kernel_width = 7, .padding_width = 3});
         });
       }},
      {"convolution 7x1 of stride 2", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x,
                                {.filters = 24,
                                 .kernel = 7,
                                 .stride = 2,
                                 .padding = 3,
                                 .kernel_width = 1,
                                 .padding_width = 0});
         });
       }},
      {"convolution in groups", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.relu(g.convolution("c", x, {.filters = 24, .kernel = 3, .padding = 1, .groups = 2}));
         });
       }},
      {"convolution in groups beside another reader", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(x, g.convolution("c", x, {.filters = 16, .kernel = 3, .padding = 1, .groups = 4}));
         });
       }},
      {"concat", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value left = g.convolution("l", x, {.filters = 24, .kernel = 1});
           return g.relu(g.concat({left, x, g.relu(g.convolution("r", x, {.filters = 8, .kernel = 1}))}));
         });
       }},
      {"concat of odd channels", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.concat({g.convolution("l", x, {.filters = 5, .kernel = 1}), x,
                            g.convolution("r", x, {.filters = 3, .kernel = 1})});
         });
       }},
      {"average over padded windows", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(x, g.average_pool(x, {.window = 3, .stride = 1, .padding = 1}));
         });
       }},
      {"average over windows, padding ignored", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.average_pool(x, {.window = 3, .stride = 2, .padding = 1, .counted = Padding::ignored});
         });
       }},
      {"average over windows beyond the edge", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value odd = g.convolution("c", x, {.filters = 5, .kernel = 1});
           return g.average_pool(odd, {.window = 5, .stride = 3, .edge = Edge::kept});
         });
       }},
      {"max pool beyond the edge", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.max_pool(x, {.window = 3, .stride = 2, .edge = Edge::kept});
         });
       }},
      {"local response norm", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(x, g.local_response_norm(x, {.size = 5, .alpha = 0.5F}));
         });
       }},
      {"local response norm of 12 channels", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.convolution("c", x, {.filters = 12, .kernel = 1});
           return g.local_response_norm(x, {.size = 3, .alpha = 0.5F});
         });
       }},
      {"auxiliary head", small,
       [](const InputShape& in) {
         return graph_of(in, [classes = in.classes](GraphBuilder& g, Value x) {
           g.auxiliary_loss(g.fully_connected("aux", g.global_average_pool(x), classes), 0.3F);
           return g.convolution("c", x, {.filters = 8, .kernel = 3});
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
      {"batch norm, relu and max pool of 5 channels", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.batch_norm("bn", g.convolution("c", x, {.filters = 5, .kernel = 1, .bias = Bias::none}));
           return g.max_pool(g.relu(x), {.window = 3, .stride = 2, .padding = 1});
         });
       }},
      {"batch norm and max pool beyond the edge", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.batch_norm("bn", g.convolution("c", x, {.filters = 16, .kernel = 1, .bias = Bias::none}));
           return g.max_pool(x, {.window = 3, .stride = 2, .edge = Edge::kept});
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
      {"stem 7x7 with a bias and relu",
       {3, 30, 29, 7},
       [](const InputShape& in) {
         GraphBuilder g("case", in);
         const Value x = g.relu(
             g.convolution("stem", g.input(), {.filters = 16, .kernel = 7, .stride = 2, .padding = 3}));
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
      {"cifar10-convnet", {3, 32, 32, 10}, cifar10_convnet, 10},
      {"alexnet",
       {3, 63, 63, 10},
       alexnet,
       10},  // of that size dropout sees one pixel, whose order is the CPU's
      {"caffenet", {3, 67, 67, 10}, caffenet, 10},
      {"googlenet", {3, 96, 96, 10}, googlenet, 10, 1e-4},
      {"hep-cnn", {3, 64, 64, 10}, hep_cnn, 10},
      {"inception-v3", {3, 299, 299, 10}, inception_v3, 10, 1e-4, 0x1p-8F, 8},
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

double size_of(std::span<const float> values) {
  double size = 0;
  for (const float value : values) size += static_cast<double>(value) * value;
  return std::sqrt(size);
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
    // A small gradient is seen in what a parameter lost only as finely as the parameter itself is stored.
    const double stored = info.role == TensorInfo::Role::parameter ? size_of(left) : 0;
    if (info.role == TensorInfo::Role::parameter)
      for (std::size_t k = 0; k < left.size(); ++k)
        left[k] -= before[i][k], right[k] -= before[i][k], other[k] -= before[i][k];
    const double off = distance(left, right, 1e-6), noise = distance(left, other, 1e-6);
    const double grain = 0x1p-23 * stored / std::max(size_of(left), 1e-6);
    const double limit = std::max({allowed, kNoise * noise, grain});
    worst = std::max(worst, off / limit);
    expect(off <= limit,
           fmt::format("{}: {:.2e} apart, allowed {:.2e} (noise {:.2e})", info.name, off, limit, noise));
  }
  return worst;
}

EngineOptions options_of(const Case& of, Precision precision) {
  return {.batch = of.batch, .precision = precision, .seed = 3};
}
Result<std::unique_ptr<CpuEngine>> compile_cpu(const Case& of, Precision precision) {
  return TRY(compile(TRY(of.build(of.input)), options_of(of, precision)));
}

Tolerance allowed_in(Precision precision) {
  if (precision == Precision::tf32) return kTf32;
  return precision == Precision::bf16 ? kBf16 : kF32;
}
std::string name_of(Precision precision) {
  if (precision == Precision::tf32) return "tf32";
  return precision == Precision::bf16 ? "bf16" : "f32 ";
}

// Bytes that mean the same numbers give the same bits, also where they are sent while a step runs.
Result<void> compare_bytes(const CudaLibrary& library, Precision precision) {
  const InputShape shape{3, 30, 29, 7};
  const auto build = [&] {
    GraphBuilder g("case", shape);
    Value x = g.convolution("stem", g.input(),
                            {.filters = 16, .kernel = 7, .stride = 2, .padding = 3, .bias = Bias::none});
    g.softmax_cross_entropy(g.fully_connected("last", g.relu(g.batch_norm("bn", x)), shape.classes));
    return std::move(g).finish();
  };
  EngineOptions options{.batch = 16, .precision = precision, .seed = 3};
  const auto floats = TRY(compile_cuda(library, TRY(build()), options, 0));
  options.pixels = PixelMeaning{{0.01F, 0.02F, 0.03F}, {-1, -2, -0.5F}};
  const auto bytes = TRY(compile_cuda(library, TRY(build()), options, 0));
  const std::size_t plane = static_cast<std::size_t>(shape.height * shape.width);
  const auto byte_at = [](std::uint64_t batch, std::size_t i) {
    return static_cast<std::uint8_t>(mix(batch, i) >> 56);
  };
  const auto fill_bytes = [&](std::uint64_t batch) {
    const std::span<std::uint8_t> rows = bytes->pixels();
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = byte_at(batch, i);
    for (std::size_t i = 0; i < 16; ++i) bytes->labels()[i] = static_cast<std::int32_t>((batch + i) % 7);
  };
  std::uint64_t next = 1;
  fill_bytes(0);
  bytes->while_waiting([&] { fill_bytes(next++); });
  for (std::uint64_t batch = 0; batch < 5; ++batch) {
    const std::span<float> rows = floats->input();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t c = i / plane % 3;
      rows[i] = static_cast<float>(byte_at(batch, i)) * options.pixels->scale[c] + options.pixels->shift[c];
    }
    for (std::size_t i = 0; i < 16; ++i) floats->labels()[i] = static_cast<std::int32_t>((batch + i) % 7);
    const double left = floats->train_batch(batch, {}).loss_sum;
    const double right = bytes->train_batch(batch, {}).loss_sum;
    floats->apply({.learning_rate = 0.1F}), bytes->apply({.learning_rate = 0.1F});
    expect(left == right, fmt::format("batch {}: loss {} of floats, {} of bytes", batch, left, right));
  }
  TRY(floats->status());
  return bytes->status();
}

Result<void> run(const CudaLibrary& library, const Case& of, Precision precision) {
  const EngineOptions options = options_of(of, precision);
  const Tolerance allowed = allowed_in(precision);
  const bool disturb = precision == Precision::f32;  // else the other precision disturbs enough
  const auto cpu = TRY(compile_cpu(of, precision == Precision::bf16 ? Precision::bf16 : Precision::f32));
  const auto disturbed =
      TRY(compile_cpu(of, precision == Precision::tf32 ? Precision::bf16 : Precision::f32));
  fill(*disturbed, 1, disturb ? of.disturbance : 0);
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
  fmt::print("{} {}: worst tensor at {:.0f} % of its limit, {} KiB\n", name_of(precision), of.name,
             100 * worst, gpu->memory_bytes() >> 10);
  return {};
}

}  // namespace

int main(int count, char** values) {
  const std::string_view wanted = count > 1 ? values[1] : "";
  const auto library = CudaLibrary::open();
  if (!library) {
    fmt::print("no GPU here: {}\n", library.error().text());
    return 1;
  }
  fmt::print("on {}\n", library->device_name(0));
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::tf32})
    if (const auto done = compare_bytes(*library, precision); !done)
      expect(false, "bytes: " + done.error().text());
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::tf32})
    for (const Case& of : cases())
      if (of.name.find(wanted) == std::string::npos) {
        continue;
      } else if (const auto done = run(*library, of, precision); !done) {
        ++failures;
        fmt::print("  FAILED: {}: {}\n", of.name, done.error().text());
      }
  fmt::print("{} failures\n", failures);
  return failures == 0 ? 0 : 1;
}
