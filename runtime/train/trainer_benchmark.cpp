// The benchmark: whole steps in windows, as training takes them, then the parts of a step by themselves. The
// parts come last, because gradients that are not exchanged and weights that all ranks change by themselves
// are of no use to a training.
#include <algorithm>
#include <utility>

#include "runtime/base/peak_memory.hpp"
#include "runtime/train/trainer.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::uint64_t kMinProbes = 3, kMaxProbes = 20;

}  // namespace

// Whether a stop was asked for.
Result<bool> Trainer::timed_steps(const BenchmarkSpec& benchmark, Throughput& steps) {
  for (std::uint64_t i = 0; i < benchmark.warmup + benchmark.repeat * benchmark.steps; ++i) {
    const bool timed = i >= benchmark.warmup;
    if (timed && (i - benchmark.warmup) % benchmark.steps == 0) {
      TRY(parts_.comm.barrier());
      parts_.reporter.start_clock();
      steps.start_window();
    }
    const auto rows = static_cast<double>(next_rows());
    const StepTotals done = TRY(step());
    TRY(after_step(done));
    if (timed) steps.step_done(rows * unit_of(parts_.data.train.shape).per_sample);
    if (done.requests.stop) return true;
  }
  return false;
}

Result<void> Trainer::take(Probe probe) {
  if (probe == Probe::repeated_input)
    TRY(forward_backward(Input::repeated));
  else if (probe == Probe::communication)
    return exchange_alone();
  else
    TRY(compute_alone(probe == Probe::alone ? Input::fresh : Input::repeated));
  const UpdateStep nothing{.learning_rate = 0, .weight_decay = 0, .gradient_scale = 0};
  if (probe == Probe::repeated_input)
    TRY(update_.apply(nothing));
  else
    update_.apply_alone(nothing);
  return parts_.engine.status();
}

// What an engine sums itself does not come this way.
Result<void> Trainer::exchange_alone() {
  const std::size_t buckets = parts_.engine.reducing() != nullptr ? 0 : parts_.engine.buckets().size();
  TRY(parts_.gradients.begin(batches_.own.begin));
  for (int kept = 1; kept < batches_.own.count(); ++kept) parts_.gradients.keep();
  for (std::size_t i = 0; i < buckets; ++i) TRY(parts_.gradients.start(i));
  TRY(parts_.gradients.finish());
  return update_.gather();
}

Result<void> Trainer::compute_alone(Input input) {
  for (int number = batches_.own.begin; number < batches_.own.end; ++number) {
    computing_ = number;
    if (input == Input::fresh && !std::exchange(filled_ahead_, false)) fill(shard(number, position_.seen));
    TRY(parts_.gradients.begin(number));
    parts_.engine.train_batch(position_.step, [](std::size_t) {});
  }
  return {};
}

Result<Seconds> Trainer::median_of(Probe probe, std::uint64_t steps) {
  Throughput times;
  TRY(take(probe));  // one that does not count
  for (std::uint64_t i = 0; i < steps; ++i) {
    times.start_window();
    TRY(take(probe));
    times.step_done(1);
  }
  return times.median();
}

// Rank 0's time, with input as training takes it: beside a step, where the engine leaves the processor free.
// The others wait for it without using their processors.
Result<Seconds> Trainer::time_alone(std::uint64_t steps) {
  TRY(parts_.comm.barrier());
  Seconds time{0};
  parts_.engine.while_waiting([this] {
    fill(shard(batches_.own.begin, position_.seen));
    filled_ahead_ = true;
  });
  if (parts_.comm.rank() == 0) time = TRY(median_of(Probe::alone, steps));
  parts_.engine.while_waiting({});
  TRY(parts_.comm.barrier());
  return time;
}

Result<BenchmarkFigures> Trainer::measure_parts(Throughput steps) {
  const std::uint64_t count = std::clamp(parts_.spec.benchmark->steps, kMinProbes, kMaxProbes);
  BenchmarkFigures out{.steps = std::move(steps), .unit = unit_of(parts_.data.train.shape)};
  parts_.engine.while_waiting({});
  out.repeated_input = TRY(median_of(Probe::repeated_input, count));
  DeviceReducing* const device = parts_.engine.reducing();
  if (device != nullptr) device->set_sums(DeviceReducing::Sums::alone);
  const Seconds compute = TRY(median_of(Probe::compute, count));
  out.alone = parts_.comm.size() == 1 ? out.steps.median() : TRY(time_alone(count));
  if (device != nullptr) device->set_sums(DeviceReducing::Sums::together);
  std::fill(parts_.engine.gradients().begin(), parts_.engine.gradients().end(), 0.0F);
  TRY(parts_.comm.barrier());
  out.communication = TRY(median_of(Probe::communication, count));
  if (device != nullptr) out.communication += Seconds(TRY(device->seconds_of_sums()));
  out.gradient_bytes = static_cast<double>(bytes_of(
      parts_.spec.allreduce.dtype, parts_.engine.gradients().size() - parts_.engine.spare_slots().size()));
  const RankFigures mine{.compute_seconds = compute.count(),
                         .peak_bytes = static_cast<double>(TRY(peak_memory_bytes())),
                         .engine_bytes = static_cast<double>(parts_.engine.memory_bytes())};
  out.ranks.resize(static_cast<std::size_t>(parts_.comm.size()));
  TRY(parts_.comm.allgather(std::as_bytes(std::span(&mine, 1)),
                            std::as_writable_bytes(std::span(out.ranks))));
  return out;
}

Result<Ending> Trainer::run_benchmark(const BenchmarkSpec& benchmark) {
  parts_.reporter.phase("benchmark");
  Throughput steps;
  if (TRY(timed_steps(benchmark, steps))) return stop();
  parts_.reporter.phase("parts of a step");
  const BenchmarkFigures figures = TRY(measure_parts(std::move(steps)));
  tell_lead();
  parts_.reporter.benchmark(figures.to_json());
  for (const std::string& line : figures.lines()) parts_.reporter.note(line);
  return Ending::finished;
}

}  // namespace dlrun::runtime
