// UnfinishedLines: what is shown, where lines cannot be drawn over, of lines that have no end yet: a progress
// bar that a program draws for an hour, a prompt. Every ten seconds it is shown as it stands, if it is new.
// Pure: texts and the time in, what is due out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/clock.hpp"
#include "src/run/run_status.hpp"

namespace dlrun::cli {

class UnfinishedLines {
 public:
  static constexpr std::chrono::seconds kInterval{10};
  struct Line {
    const plan::RankPlan* rank;
    job::OutputStream stream;
    std::string text;
  };

  void set(const plan::RankPlan& rank, job::OutputStream stream, std::string_view text, Ticks now);
  // The line has its end, and is shown as a whole.
  void ended(const plan::RankPlan& rank, job::OutputStream stream);
  std::optional<Ticks> due() const;
  std::vector<Line> take_due(Ticks now);

 private:
  struct Entry {
    Line line;
    Ticks due;
    bool is_new = true;
  };
  std::map<std::pair<int, job::OutputStream>, Entry> lines_;
};

}  // namespace dlrun::cli
