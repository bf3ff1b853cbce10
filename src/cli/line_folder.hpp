// LineFolder: equal lines of many ranks become one, "[worker 0-15] ...", where they come within a short while
// of each other. Pure: lines and the time in, folded lines out. No line is lost or waits longer than the
// window, each rank's lines keep their order, and what waits is bounded.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/run/run_status.hpp"

namespace dlrun::cli {

struct FoldedLine {
  job::OutputStream stream{};
  std::string role;
  std::vector<const plan::RankPlan*> ranks;  // in the order of their task index
  std::string text;
};

// "0-3,7" of the ranks' task indices.
std::string task_ranges(const std::vector<const plan::RankPlan*>& ranks);

class LineFolder {
 public:
  using Emit = std::function<void(const FoldedLine&)>;
  explicit LineFolder(Emit emit) : emit_(std::move(emit)) {}

  // How many ranks each role has: a line that all of them have said waits for nobody.
  void expect(const plan::Plan& plan);
  void add(const plan::RankPlan& rank, job::OutputStream stream, std::string_view text, Ticks now);
  // What has waited long enough.
  void flush_due(Ticks now);
  void flush();
  // The time of the next flush_due(); unset while no line waits.
  std::optional<Ticks> due() const;

 private:
  struct Group {
    FoldedLine line;
    Ticks due;
  };
  bool complete(const Group& group) const;
  void emit_first();

  Emit emit_;
  std::deque<Group> groups_;
  std::uint64_t first_number_ = 0;                          // of groups_.front()
  std::map<std::string, std::deque<std::uint64_t>> known_;  // text and role -> its groups' numbers, in order
  std::map<int, std::uint64_t> last_of_rank_;  // the number behind the last group that has a line of it
  std::map<std::string, std::size_t> expected_;
  std::size_t bytes_ = 0;
};

}  // namespace dlrun::cli
