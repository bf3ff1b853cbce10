#include "src/cli/run_printer.hpp"

#include <algorithm>

#include "src/base/exit_code.hpp"
#include "src/base/units.hpp"
#include "src/cli/progress_bar.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/record/record.hpp"

namespace dlrun::cli {
namespace {

constexpr Tint kTints[] = {Tint::cyan, Tint::magenta, Tint::blue, Tint::yellow, Tint::green};

// Paths below the working directory are shown as users type them.
std::string shown_path(const std::string& path) {
  std::error_code problem;
  const auto relative = std::filesystem::relative(path, problem);
  return problem || relative.empty() || relative.string().starts_with("..") ? path : relative.string();
}

std::string followers_text(const job::FirstFailure& failed) {
  const std::string cause = failed.failed_after_cause.empty() ? "" : " (" + failed.failed_after_cause + ")";
  return failed.failed_after == 1
             ? "1 other rank failed after it" + cause
             : fmt::format("{} other ranks failed after it{}", failed.failed_after, cause);
}

std::string hint_of(const job::FirstFailure& failed) {
  if (failed.log_path.empty()) return failed.hint;
  const std::string log = shown_path(failed.log_path);
  if (failed.reason.starts_with("cannot write " + failed.log_path))
    return failed.reason.ends_with("File too large")
               ? "the job's limit on file sizes is too small for this log: ulimit -f"
               : "free some space there, or set another run directory with --run-dir";
  std::error_code problem;
  if (!std::filesystem::exists(failed.log_path, problem)) return failed.hint;
  return (failed.hint.empty() ? "" : failed.hint + "; ") + "its full output is in " + log;
}

}  // namespace

std::string result_text(const Json& result) {
  std::string text;
  if (!result.is_object()) return text;
  for (const auto& [name, value] : result.items()) {
    if (value.is_structured()) continue;  // tables are the record's
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    if (!text.empty()) text += ", ";
    if (name.find("accuracy") != std::string::npos && value.is_number())
      text += fmt::format("{} {:.2f} %", words, value.get<double>() * 100);
    else if (value.is_number_float())
      text += fmt::format("{} {:.4g}", words, value.get<double>());
    else
      text += words + " " + (value.is_string() ? value.get<std::string>() : to_text(value));
  }
  return plain_text(text);
}

RunPrinter::RunPrinter(Console& console, const Clock& clock, Choice choice)
    : console_(console),
      clock_(clock),
      began_(clock.ticks()),
      choice_(std::move(choice)),
      folds_out_(choice_.fold && console.shows_out_on_terminal()),
      folds_err_(choice_.fold),  // also in files: equal tracebacks of all ranks are one there, too
      folder_([this](const FoldedLine& line) { print_line(line); }) {}

Result<void> RunPrinter::planned(const plan::Plan& plan) {
  hosts_.clear();  // of an attempt before
  for (const plan::NodePlan& node : plan.nodes) hosts_.push_back(node.host.get());
  ranks_ = plan.ranks.size();
  folder_.expect(plan);
  console_.detail(fmt::format("dlrun: {} ranks on {} node{}, MPI by {}, run directory {}", plan.ranks.size(),
                              plan.nodes.size(), plan.nodes.size() == 1 ? "" : "s", plan::to_text(plan.mpi),
                              plan.run_directory));
  return choice_.tee ? choice_.tee->check(plan) : Result<void>{};
}

void RunPrinter::phase(const std::string& text) {
  phase_ = text;
  draw_status();
}

// The program's own reports are worth more than the bar that it draws.
bool RunPrinter::draws_live(const plan::RankPlan& rank, job::OutputStream stream) const {
  const bool chosen = rank.rank == Rank(0) || ranks_ == 1;
  const bool on_terminal =
      stream == job::OutputStream::out ? console_.shows_out_on_terminal() : console_.shows_err_on_terminal();
  return chosen && on_terminal && console_.interactive() && report_.is_null();
}

void RunPrinter::unfinished(const plan::RankPlan& rank, job::OutputStream stream, std::string_view text) {
  if (choice_.tee && !choice_.tee->contains(rank)) return;
  if (!draws_live(rank, stream)) return unfinished_.set(rank, stream, text, clock_.ticks());
  live_ = Live{rank.rank.get(), stream, label_of({stream, rank.role, {&rank}, ""}) + " " + std::string(text)};
  draw_status();
}

void RunPrinter::end_live(const plan::RankPlan& rank, job::OutputStream stream) {
  unfinished_.ended(rank, stream);
  if (!live_ || live_->rank != rank.rank.get() || live_->stream != stream) return;
  live_.reset();
  draw_status();
}

std::string RunPrinter::status_text(int width) const {
  if (live_) return live_->text;
  if (report_.is_null()) return phase_;
  const ProgressTimes times{.elapsed = clock_.ticks() - began_,
                            .left = time_left(first_report_, report_, last_report_at_ - first_report_at_)};
  return progress_line(report_, times, phase_, width);
}

void RunPrinter::draw_status() {
  if (console_.interactive()) console_.status_line(status_text(console_.width()));
}

void RunPrinter::output(const plan::RankPlan& rank, job::OutputStream stream, std::string_view line) {
  if (choice_.tee && !choice_.tee->contains(rank)) return;
  end_live(rank, stream);
  if (stream == job::OutputStream::out ? folds_out_ : folds_err_)
    return folder_.add(rank, stream, line, clock_.ticks());
  print_line({stream, rank.role, {&rank}, std::string(line)});
}

std::optional<Ticks> RunPrinter::lines_due() const {
  const auto folded = folder_.due(), unfinished = unfinished_.due();
  return folded && unfinished ? std::min(folded, unfinished) : folded ? folded : unfinished;
}

void RunPrinter::flush_lines(std::optional<Ticks> until) {
  if (until)
    for (const UnfinishedLines::Line& line : unfinished_.take_due(*until))
      print_line({line.stream, line.rank->role, {line.rank}, line.text});
  until ? folder_.flush_due(*until) : folder_.flush();
}

std::string RunPrinter::label_of(const FoldedLine& line) const {
  const plan::RankPlan& rank = *line.ranks.front();
  std::string label = fmt::format("[{} {}", line.role, task_ranges(line.ranks));
  if (hosts_.size() > 1 && line.ranks.size() == 1)
    label += " " + hosts_[static_cast<std::size_t>(rank.node.get())];
  return label + "]";
}

void RunPrinter::print_line(const FoldedLine& line) {
  const plan::RankPlan& rank = *line.ranks.front();
  const std::string label = label_of(line);
  const Tint tint = line.ranks.size() > 1
                        ? Tint::bold
                        : kTints[static_cast<std::size_t>(rank.rank.get()) % std::size(kTints)];
  if (line.stream == job::OutputStream::out)
    console_.gather_out(console_.tinted_out(label, tint) + " " +
                        (console_.shows_out_on_terminal() ? with_colors_ended(line.text) : line.text));
  else
    console_.gather_err(console_.tinted_err(label, tint) + " " +
                        (console_.shows_err_on_terminal() ? with_colors_ended(line.text) : line.text));
}

void RunPrinter::progress(const Json& report) {
  const Ticks now = clock_.ticks();
  if (first_report_.is_null()) {
    first_report_ = report;
    first_report_at_ = now;
  }
  report_ = report;
  last_report_at_ = now;
  live_.reset();
  if (!report.contains("phase")) phase_.clear();
  console_.interactive() ? draw_status() : say_progress();
}

// A line a minute tells the reader of a batch job's output how it stands.
void RunPrinter::say_progress() {
  constexpr std::chrono::minutes interval{1};
  constexpr int wide = 200;
  if (last_report_at_ - said_progress_.value_or(began_) < interval) return;
  said_progress_ = last_report_at_;
  console_.say("dlrun: " + status_text(wide));
}

void RunPrinter::problem(const std::string& text) {
  console_.err(console_.tinted_err("dlrun: error: ", Tint::red) + plain_text(text, Newlines::kept));
}

void RunPrinter::note(const std::string& text) {
  console_.say("dlrun: " + plain_text(text, Newlines::kept));
}

void RunPrinter::print_failure(const job::FirstFailure& first_failure) {
  console_.err(console_.tinted_err("dlrun: error: ", Tint::red) +
               plain_text(first_failure.text(), Newlines::kept));
  if (!first_failure.last_lines.empty()) console_.err("  its last lines:");
  for (const std::string& line : first_failure.last_lines) console_.err("  | " + plain_text(line));
  if (first_failure.failed_after > 0) console_.err("  " + plain_text(followers_text(first_failure)));
  const std::string hint = hint_of(first_failure);
  if (!hint.empty()) console_.err("  hint: " + plain_text(hint));
}

void RunPrinter::finished(const plan::Plan& plan, const job::Outcome& outcome) {
  console_.clear_status_line();
  if (outcome.agents_unverified > 0)
    console_.err(fmt::format("dlrun: {} node(s) could not confirm that no process is left",
                             outcome.agents_unverified));
  if (outcome.strays > 0)
    console_.say(fmt::format("dlrun: ended {} stray process(es) of ranks", outcome.strays));
  if (const std::string lost = console_.lost(); !lost.empty())
    problem(fmt::format("part of the ranks' output could not be shown: {}; all of it is in {}", lost,
                        shown_path(plan.run_directory + "/logs")));
  const std::string took = format_duration(outcome.time.total);
  const std::string directory = shown_path(plan.run_directory);
  if (outcome.first_failure) return print_failure(*outcome.first_failure);
  if (outcome.exit_code != 0)
    return console_.err(fmt::format("dlrun: {}; it took {}; run directory {}",
                                    plain_text(job::reason_of(outcome), Newlines::kept), took, directory));
  const std::string result = result_text(outcome.result);
  console_.say(console_.tinted_err("dlrun: ", Tint::green) + fmt::format("done in {}{}{}; run directory {}",
                                                                         took, result.empty() ? "" : ": ",
                                                                         result, directory));
}

}  // namespace dlrun::cli
