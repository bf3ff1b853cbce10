// dlrun-engine-bench [MODEL [f32|bf16 [BATCH [STEPS]]]]: images a second of one engine alone on random
// images, and where the time of a step goes. Pin it to a core (taskset -c 0) and set OMP_NUM_THREADS=1 to
// compare.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <string>

#include <fmt/core.h>

#include "runtime/graph/cpu_engine.hpp"
#include "runtime/models/models.hpp"
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

Result<void> bench(const std::string& model, Precision precision, std::int64_t batch, std::int64_t steps) {
  const InputShape shape = model == "mnist-cnn" ? InputShape{} : InputShape{3, 32, 32, 10};
  for (const Model& known : models()) {
    if (known.name != model) continue;
    const Time start = std::chrono::steady_clock::now();
    const auto engine = TRY(compile(TRY(known.build(shape)), {.batch = batch, .precision = precision}));
    const double created = seconds_since(start);
    fill(*engine, shape.classes);
    std::vector<double> times, busy;
    BatchResult result;
    for (std::int64_t step = 0; step < steps; ++step) {
      const Time begin = std::chrono::steady_clock::now();
      const double busy_before = processor_seconds();
      result = engine->train_batch(static_cast<std::uint64_t>(step), nullptr);
      engine->apply({.learning_rate = 0.01F, .momentum = 0.9F});
      times.push_back(seconds_since(begin));
      busy.push_back(processor_seconds() - busy_before);
    }
    fmt::print("{} {} batch {}: {:.0f} images/s, {:.0f} a second of processor time (best step {:.0f})\n",
               model, precision == Precision::bf16 ? "bf16" : "f32", batch, batch / median(times),
               batch / median(busy), batch / *std::min_element(busy.begin(), busy.end()));
    fmt::print("step {:.2f} ms, the first {:.1f}; created in {:.1f} ms; {} of arenas; loss {:.4f}\n",
               median(times) * 1e3, times[0] * 1e3, created * 1e3, format_size(engine->memory_bytes()),
               result.loss_sum / static_cast<double>(batch));
    print_table(*engine, std::min<std::int64_t>(steps, 11));
    return {};
  }
  return fail(ErrorKind::usage, "there is no model '{}'", model);
}

}  // namespace

int main(int count, char** values) {
  const auto argument = [&](int index, const char* fallback) {
    return std::string(count > index ? values[index] : fallback);
  };
  const auto batch = parse_integer(argument(3, "64"), 1, 1 << 20);
  const auto steps = parse_integer(argument(4, "40"), 1, 1 << 20);
  const auto done =
      batch && steps ? bench(argument(1, "mnist-cnn"),
                             argument(2, "f32") == "bf16" ? Precision::bf16 : Precision::f32, *batch, *steps)
                     : fail(ErrorKind::usage, "usage: dlrun-engine-bench [MODEL [f32|bf16 [BATCH [STEPS]]]]");
  if (done) return 0;
  fmt::print(stderr, "dlrun-engine-bench: error: {}\n", done.error().text());
  return 64;
}
