// RunPrinter: draws a run for people: labelled lines of the ranks, a progress bar, notes, and the verdict
// last.
#pragma once

#include "src/base/json.hpp"
#include "src/cli/console.hpp"
#include "src/cli/line_folder.hpp"
#include "src/cli/rank_choice.hpp"
#include "src/cli/unfinished_lines.hpp"
#include "src/run/run_status.hpp"

namespace dlrun::cli {

class RunPrinter final : public job::RunStatus {
 public:
  struct Choice {
    bool fold = true;                    // equal lines of many ranks, on a terminal
    std::optional<RankChoice> tee = {};  // only these ranks' lines
  };
  RunPrinter(Console& console, const Clock& clock, Choice choice);

  Result<void> planned(const plan::Plan& plan) override;
  void phase(const std::string& text) override;
  void output(const plan::RankPlan& rank, job::OutputStream stream, std::string_view line) override;
  void unfinished(const plan::RankPlan& rank, job::OutputStream stream, std::string_view text) override;
  std::optional<Ticks> lines_due() const override;
  void flush_lines(std::optional<Ticks> until) override;
  void rest() override { console_.flush(); }
  void progress(const Json& report) override;
  void problem(const std::string& text) override;
  void note(const std::string& text) override;
  void resized() override { draw_status(); }
  void stopping() override { console_.stop_waiting_for_readers(); }
  void finished(const plan::Plan& plan, const job::Outcome& outcome) override;

 private:
  void print_line(const FoldedLine& line);
  std::string label_of(const FoldedLine& line) const;
  bool draws_live(const plan::RankPlan& rank, job::OutputStream stream) const;
  void end_live(const plan::RankPlan& rank, job::OutputStream stream);
  void draw_status();
  std::string status_text(int width) const;
  void say_progress();
  void print_failure(const job::FirstFailure& first_failure);
  Console& console_;
  const Clock& clock_;
  Ticks began_;
  Choice choice_;
  bool folds_out_, folds_err_;
  LineFolder folder_;
  UnfinishedLines unfinished_;
  // What the line at the bottom is drawn from.
  struct Live {
    int rank;
    job::OutputStream stream;
    std::string text;
  };
  std::optional<Live> live_;  // a line of the only rank, or the first, that has no end yet
  std::string phase_;
  Json report_, first_report_;  // null: none yet
  Ticks first_report_at_{}, last_report_at_{};
  std::optional<Ticks> said_progress_;  // where nothing can be drawn over
  std::size_t ranks_ = 0;
  std::vector<std::string> hosts_;  // by node; a label names the host where there are several
};

// "12.3 s, 10 of 12 ..." for the last line: the program's own result, as text.
std::string result_text(const Json& result);

}  // namespace dlrun::cli
