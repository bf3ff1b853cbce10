// StepClock: where the time of a rank's steps goes: input, computing, and the wait for other ranks. Ranks
// that sum their gradients all take as long as the slowest one; without the wait each shows its own pace. It
// is one clock that is always in one part: a change costs some tens of nanoseconds.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "runtime/base/trace.hpp"
#include "runtime/engine/engine.hpp"
#include "src/base/clock.hpp"

namespace dlrun::runtime {

/// Mean seconds per step.
struct StepShares {
  double input = 0, compute = 0, wait = 0;
};

class StepClock {
 public:
  enum class Part { other, input, compute, wait };

  /// This rank works for so many shards in each step: work counts per shard, so that a rank that has more of
  /// them than others is not taken for a slow one.
  void set_shards(int shards) { shards_ = shards; }
  /// Where the parts are told too, all but `other`.
  void set_trace(Trace& trace) { trace_ = &trace; }
  /// From here to the next call, the time is this part's.
  void begin(Part part) { change(part, std::chrono::steady_clock::now()); }
  /// The time of the part under way went on a device, with what the host did beside it: the device waited for
  /// other ranks at the end of it, and what it was not busy of the rest, it lacked input.
  void divide(const DeviceTimes& device) {
    using std::chrono::duration_cast, std::chrono::steady_clock;
    const Ticks now = steady_clock::now(), since = since_;
    const auto of_device = [](double seconds) { return duration_cast<Ticks::duration>(Seconds(seconds)); };
    const auto waited = std::min(of_device(device.waited), now - since);
    const auto busy = std::min(of_device(device.busy), now - since - waited);
    const Part under_way = part_;
    part_ = Part::compute;
    change(Part::input, since + busy);
    change(Part::wait, now - waited);
    change(under_way, now);
  }
  void step_done() {
    begin(Part::other);
    ++steps_;
  }
  /// Of the steps since the last call; unset: there was none.
  std::optional<StepShares> take() {
    if (steps_ == 0) return std::nullopt;
    const auto mean = [&](Part part) {
      return Seconds(sums_[static_cast<std::size_t>(part)]).count() / static_cast<double>(steps_);
    };
    const StepShares out{mean(Part::input), mean(Part::compute), mean(Part::wait)};
    sums_ = {}, steps_ = 0;
    return out;
  }

 private:
  void change(Part part, Ticks now) {
    if (part_ != Part::other && trace_ != nullptr && trace_->on())
      trace_->add({Trace::Track::training, name_of(part_), "step", since_, now});
    const bool is_work = part_ == Part::input || part_ == Part::compute;
    sums_[static_cast<std::size_t>(part_)] += is_work ? (now - since_) / shards_ : now - since_;
    part_ = part, since_ = now;
  }
  static const char* name_of(Part part) {
    static constexpr std::array<const char*, 4> names{"other", "input", "compute", "wait"};
    return names[static_cast<std::size_t>(part)];
  }
  Trace* trace_ = nullptr;
  Part part_ = Part::other;
  int shards_ = 1;
  Ticks since_ = std::chrono::steady_clock::now();
  std::array<Ticks::duration, 4> sums_{};
  std::uint64_t steps_ = 0;
};

}  // namespace dlrun::runtime
