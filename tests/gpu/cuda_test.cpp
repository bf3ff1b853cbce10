// test-cuda: the GPU's engine against the CPU's: each operator in a small graph, then whole models,
// optimizers, rows that come as bytes, and models in stages. Needs a GPU: without one it fails, and says so.
// An argument chooses the cases whose names hold it.
#include <cstdio>
#include <string>
#include <string_view>

#include "compare.hpp"
#include "runtime/base/keyed_random.hpp"

namespace {

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::gpu;

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
  options.pixels = InputScaling{{0.01F, 0.02F, 0.03F}, {-1, -2, -0.5F}};
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

void report(const std::string& name, const Result<void>& done) {
  if (!done) expect(false, name + ": " + done.error().text());
}

}  // namespace

int main(int count, char** values) {
  const std::string_view wanted = count > 1 ? values[1] : "";
  const auto chosen = [&](const std::string& name) { return name.find(wanted) != std::string::npos; };
  const auto library = CudaLibrary::open();
  if (!library) {
    fmt::print("no GPU here: {}\n", library.error().text());
    return 1;
  }
  fmt::print("on {}\n", library->device_name(0));
  if (chosen("dtypes")) report("dtypes", compare_dtypes(*library));
  if (chosen("jpegs")) report("jpegs", compare_jpegs(*library));
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::tf32}) {
    if (chosen("bytes")) report("bytes", compare_bytes(*library, precision));
    if (chosen("stages") && precision != Precision::tf32)
      report("stages", compare_stages(*library, precision));
    if (chosen("optimizers")) report("optimizers", compare_optimizers(*library, precision));
    for (const std::vector<Case>* cases :
         {&operator_cases(), &norm_sum_cases(), &science_cases(), &sequence_cases(), &gan_cases()})
      for (const Case& of : *cases)
        if (chosen(of.name)) report(of.name, compare(*library, of, precision));
  }
  fmt::print("{} failures\n", failures());
  return failures() == 0 ? 0 : 1;
}
