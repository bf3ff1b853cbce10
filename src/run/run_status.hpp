// RunStatus: what happens during a run, as calls. The command line draws it, tests record it; the run itself
// prints nothing. While ranks run the calls come from a thread of their own (status_queue.hpp), one after
// another, so that a reader who takes nothing holds up none but itself; only stopping() comes at any time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_fwd.hpp"
#include "src/plan/plan.hpp"
#include "src/protocol/messages.hpp"
#include "src/record/outcome.hpp"

namespace dlrun::job {

using protocol::OutputStream;

class RunStatus {
 public:
  virtual ~RunStatus() = default;
  // An Error where it is no plan for what is to be drawn (the user named ranks that are not in it).
  virtual Result<void> planned(const plan::Plan& plan) = 0;
  virtual void phase(const std::string& text) = 0;  // "starting 2 ranks", "loading data"
  virtual void output(const plan::RankPlan& rank, OutputStream stream, std::string_view line) = 0;
  // A line that has no end yet, as it stands; the same again where only its bytes are new.
  virtual void unfinished(const plan::RankPlan&, OutputStream, std::string_view) {}
  // Lines may wait a moment for equal ones of other ranks: until when, and what is due by then; at the end
  // all.
  virtual std::optional<Ticks> lines_due() const { return std::nullopt; }
  virtual void flush_lines(std::optional<Ticks>) {}
  // Nothing more waits to be shown now: lines that were gathered to be written at once are written.
  virtual void rest() {}
  virtual void progress(
      const Json& report) = 0;  // rank 0's {"step": .., "steps": .., "epoch": .., "loss": ..}
  virtual void problem(const std::string& text) = 0;  // said whatever the user wants to hear
  virtual void note(const std::string& text) = 0;
  virtual void resized() {}  // the terminal
  // A signal asked for the end: nothing may wait for a slow reader now. From any thread.
  virtual void stopping() = 0;
  virtual void finished(const plan::Plan& plan, const Outcome& outcome) = 0;
};

}  // namespace dlrun::job
