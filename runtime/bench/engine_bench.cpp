// dlrun-engine-bench [MODEL [f32|tf32|bf16 [BATCH [STEPS [cpu|cuda]]]]]: images or tokens per second of one
// engine alone on random ones, and where the time of a step goes. MODEL is a name, or a file {model: ...,
// positions: 256, vocabulary: 256} with a transformer of a user's own. On a CPU pin it to a core (taskset -c
// 0) and set OMP_NUM_THREADS=1 to compare. On a GPU the images are the same in every step: "resident" counts
// a step without copying them there, as benchmarks of frameworks do on synthetic images.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <string>

#include <fmt/core.h>

#include "runtime/bench/bench_shape.hpp"
#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/cuda/cuda_engine.hpp"
#include "runtime/models/layer_list.hpp"
#include "runtime/models/models.hpp"
#include "src/base/fields.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/units.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

using Time = std::chrono::steady_clock::time_point;

double seconds_since(Time start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void fill(Engine& engine, std::int64_t classes) {
  std::uint32_t state = 1;
  for (std::int32_t& token : engine.tokens()) {
    state = state * 1664525 + 1013904223;
    token = static_cast<std::int32_t>((state >> 8) % static_cast<std::uint32_t>(classes));
  }
  for (float& pixel : engine.input()) {
    state = state * 1664525 + 1013904223;
    pixel = static_cast<float>(state >> 8) * 0x1p-24F;
  }
  for (std::int32_t& label : engine.labels()) {
    state = state * 1664525 + 1013904223;
    label = static_cast<std::int32_t>((state >> 8) % static_cast<std::uint32_t>(classes));
  }
}

void print_table(CpuEngine& engine, std::int64_t steps) {
  std::vector<std::vector<OperatorTime>> all;
  for (std::int64_t step = 0; step < steps; ++step) all.push_back(engine.profile_step(100 + step));
  fmt::print("{:24} {:9} {:>9} {:>9}  {}\n", "operator", "phase", "ms", "GFLOP/s", "implementations");
  for (std::size_t row = 0; row < all[0].size(); ++row) {
    std::vector<double> times;
    for (const auto& step : all) times.push_back(step[row].seconds);
    const OperatorTime& line = all[0][row];
    const double time = *std::min_element(times.begin(), times.end());
    if (time < 5e-6) continue;
    fmt::print("{:24} {:9} {:9.3f} {:>9}  {}\n", line.name, line.phase, time * 1e3,
               line.operations > 0 ? fmt::format("{:.0f}", line.operations / time / 1e9) : "-",
               line.phase == "forward" ? line.description : "");
  }
}

const char* name_of(Precision precision) {
  if (precision == Precision::tf32) return "tf32";
  return precision == Precision::bf16 ? "bf16" : "f32";
}

struct BenchSettings {
  std::string model;
  Precision precision = Precision::f32;
  std::int64_t batch = 64, steps = 40;
};

struct BenchModel {
  Graph graph;
  InputShape shape;
};

Result<BenchModel> model_of(const std::string& name) {
  if (!name.ends_with(".yaml"))
    return BenchModel{TRY(build_model(name, bench_shape(name))), bench_shape(name)};
  const yaml::Node root = TRY(yaml::parse(TRY(read_regular_file(name)), name));
  yaml::Fields fields = TRY(yaml::Fields::of(root, "file"));
  const InputShape shape = token_sequences(TRY(fields.integer_or("positions", 256, 1, 1 << 20)),
                                           TRY(fields.integer_or("vocabulary", 256, 1, 1 << 20)));
  const LayerList list = TRY(read_layer_list(*TRY(fields.require("model")), "model"));
  TRY(fields.finish());
  return BenchModel{TRY(build_layers(list, shape)), shape};
}

// Fills, runs and prints.
void run(Engine& engine, const BenchSettings& settings, const InputShape& shape, double created) {
  fill(engine, shape.classes);
  std::vector<double> times, busy;
  BatchResult result;
  for (std::int64_t step = 0; step < settings.steps; ++step) {
    const Time begin = std::chrono::steady_clock::now();
    const double busy_before = processor_seconds();
    result = engine.train_batch(static_cast<std::uint64_t>(step), nullptr);
    engine.apply({.learning_rate = 0.01F});
    times.push_back(seconds_since(begin));
    busy.push_back(processor_seconds() - busy_before);
  }
  const auto batch = static_cast<double>(settings.batch);
  const double each = batch * static_cast<double>(shape.labels_per_sample());
  fmt::print("{} {} batch {}: {:.0f} {}/s, {:.0f} a second of processor time (best step {:.0f})\n",
             settings.model, name_of(settings.precision), settings.batch, each / median(times),
             shape.kind == SampleKind::tokens ? "tokens" : "images", each / median(busy),
             each / *std::min_element(busy.begin(), busy.end()));
  fmt::print("step {:.2f} ms, the first {:.1f}; created in {:.1f} ms; {} of arenas; loss {:.4f}\n",
             median(times) * 1e3, times[0] * 1e3, created * 1e3, format_size(engine.memory_bytes()),
             result.loss_sum / batch);
}

// Sums by kind of operator, and the twelve longest.
void print_gpu_table(std::vector<OperatorTime> rows, std::int64_t batch) {
  const auto time_of = [&](std::string_view name) {
    return std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; })->seconds;
  };
  const double step = time_of("step"), update = time_of("update"), copy = time_of("copy");
  fmt::print("resident: {:.0f} samples/s; step {:.3f} ms, update {:.3f} ms, copying the batch {:.3f} ms\n",
             static_cast<double>(batch) / (step + update), step * 1e3, update * 1e3, copy * 1e3);
  rows.resize(rows.size() - 3);
  std::map<std::string, OperatorTime> kinds;
  for (const OperatorTime& row : rows) {
    OperatorTime& kind = kinds[row.name.substr(0, row.name.rfind(' ')) + " " + row.phase];
    kind.seconds += row.seconds, kind.operations += row.operations, kind.bytes += row.bytes;
  }
  const auto line = [](const std::string& name, const OperatorTime& time) {
    const auto rate = [&](double amount, double unit, const char* of) {
      return amount > 0 ? fmt::format("{:.0f} {}", amount / time.seconds / unit, of) : "-";
    };
    fmt::print("{:44} {:8.3f} ms {:>12} {:>10}\n", name, time.seconds * 1e3,
               rate(time.operations, 1e12, "TFLOP/s"), rate(time.bytes, 1e9, "GB/s"));
  };
  for (const auto& [name, time] : kinds) line(name, time);
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  rows.resize(std::min<std::size_t>(rows.size(), 12));
  for (const OperatorTime& row : rows) line(row.name + " " + row.phase, row);
}

Result<void> bench(const BenchSettings& settings, std::string_view device) {
  BenchModel model = TRY(model_of(settings.model));
  const EngineOptions options{
      .batch = settings.batch, .precision = settings.precision, .optimizer = momentum_sgd(0.9)};
  const Time start = std::chrono::steady_clock::now();
  if (device == "cuda") {
    const CudaLibrary library = TRY(CudaLibrary::open());
    const auto engine = TRY(compile_cuda(library, std::move(model.graph), options, 0));
    run(*engine, settings, model.shape, seconds_since(start));
    TRY(engine->status());
    print_gpu_table(TRY(engine->profile()), settings.batch);
    fmt::print("memory: {} bytes of the GPU\n", engine->memory_bytes());
    return {};
  }
  const auto engine = TRY(compile(std::move(model.graph), options));
  run(*engine, settings, model.shape, seconds_since(start));
  print_table(*engine, std::min<std::int64_t>(settings.steps, 11));
  return {};
}

}  // namespace

int main(int count, char** values) {
  const auto argument = [&](int index, const char* fallback) {
    return std::string(count > index ? values[index] : fallback);
  };
  const auto batch = parse_integer(argument(3, "64"), 1, 1 << 20);
  const auto steps = parse_integer(argument(4, "40"), 1, 1 << 20);
  const std::string named = argument(2, "f32");
  const Precision precision = named == "bf16"   ? Precision::bf16
                              : named == "tf32" ? Precision::tf32
                                                : Precision::f32;
  const auto done =
      batch && steps ? bench({argument(1, "mnist-cnn"), precision, *batch, *steps}, argument(5, "cpu"))
                     : fail(ErrorKind::usage,
                            "usage: dlrun-engine-bench [MODEL [f32|tf32|bf16 [BATCH [STEPS [cpu|cuda]]]]]");
  if (done) return 0;
  fmt::print(stderr, "dlrun-engine-bench: error: {}\n", done.error().text());
  return 64;
}
