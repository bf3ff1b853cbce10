// Stragglers: which ranks are slower than the others, from what they report, while the run is on. Pure. Ranks
// that train together all take as long as the slowest one, so where they tell, their time without the wait
// for others counts: computing and input. A rank is a straggler once it has been slower than the median by a
// robust margin in several windows one after another, and none any more once it was not in one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json.hpp"
#include "src/base/types.hpp"

namespace dlrun::job {

/// Seconds per step, of the last window. Shares that a rank does not tell are unset.
struct Straggler {
  int rank = 0;
  double seconds = 0, median = 0;  // its time, and that of the median rank
  std::optional<double> compute = {}, input = {}, wait = {};
  double times_slower() const { return median > 0 ? seconds / median : 0; }
};
Json to_json(const Straggler& straggler);
/// "12.1 ms per step without the wait for others, the median rank 8.0 ms (1.51 x); computing 11 ms, ..."
std::string text_of(const Straggler& straggler);

class Stragglers {
 public:
  struct Settings {
    Seconds window{2};
    int windows = 3;             // one after another
    std::int64_t min_steps = 3;  // of a rank in a window, or the window goes on
    double ratio = 1.2;          // to the median
    double spreads = 5;          // above the median, in medians of the distance from it
    Seconds min_difference{0.0005};
  };
  Stragglers() : Stragglers(Settings()) {}
  explicit Stragglers(Settings settings) : settings_(settings) {}

  /// {"step", and maybe "compute", "input", "wait"}: seconds per step since its last report.
  void reported(Rank rank, const Json& report, Ticks now);
  /// Whether a window has just ended in which stragglers came or went.
  bool judged(Ticks now);
  /// Of them, those that have just become one, and the ranks that are none any more.
  std::vector<Straggler> came() const;
  std::vector<int> went() const;
  /// By rank.
  const std::vector<Straggler>& now() const { return slow_; }
  /// All that have been one, as each was at its slowest; by rank.
  const std::vector<Straggler>& ever() const { return ever_; }

 private:
  struct Window {
    std::int64_t last_step = -1, steps = 0;
    Ticks last{};
    Seconds gap{0};                                        // between its last two reports
    double seconds = 0, compute = 0, input = 0, wait = 0;  // sums
    bool tells = false;
    int slow_windows = 0;
  };
  std::optional<double> own_time(const Window& window) const;
  bool is_silent(const Window& window, Ticks now) const;
  void judge(double median, double margin);
  void remember(const Straggler& straggler);

  Settings settings_;
  std::vector<Window> ranks_;
  std::optional<Ticks> began_;
  bool all_tell_ = false;
  std::vector<Straggler> slow_, before_, ever_;
};

}  // namespace dlrun::job
