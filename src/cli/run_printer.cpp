#include "src/cli/run_printer.hpp"

#include <algorithm>

#include "src/base/exit_code.hpp"
#include "src/base/units.hpp"
#include "src/cli/progress_bar.hpp"
#include "src/job/record.hpp"

namespace dlrun::cli {
namespace {

constexpr Tint kTints[] = {Tint::cyan, Tint::magenta, Tint::blue, Tint::yellow, Tint::green};

// Paths below the working directory are shown as users type them.
std::string shown_path(const std::string& path) {
  std::error_code problem;
  const auto relative = std::filesystem::relative(path, problem);
  return problem || relative.empty() || relative.string().starts_with("..") ? path : relative.string();
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
  return text;
}

RunPrinter::RunPrinter(Console& console, const Clock& clock, Choice choice)
    : console_(console),
      clock_(clock),
      began_(clock.ticks()),
      choice_(std::move(choice)),
      folds_out_(choice_.fold && console.shows_out_on_terminal()),
      folds_err_(choice_.fold && Console::shows_err_on_terminal()),
      folder_([this](const FoldedLine& line) { print_line(line); }) {}

Result<void> RunPrinter::planned(const plan::Plan& plan) {
  hosts_.clear();  // of an attempt before
  for (const plan::NodePlan& node : plan.nodes) hosts_.push_back(node.host.get());
  folder_.expect(plan);
  console_.detail(fmt::format("dlrun: {} ranks on {} node{}, MPI by {}, run directory {}", plan.ranks.size(),
                              plan.nodes.size(), plan.nodes.size() == 1 ? "" : "s", plan::to_text(plan.mpi),
                              plan.run_directory));
  return choice_.tee ? choice_.tee->check(plan) : Result<void>{};
}

void RunPrinter::phase(const std::string& text) {
  console_.status_line(text);
}

void RunPrinter::output(const plan::RankPlan& rank, job::OutputStream stream, std::string_view line) {
  if (choice_.tee && !choice_.tee->contains(rank)) return;
  if (stream == job::OutputStream::out ? folds_out_ : folds_err_)
    return folder_.add(rank, stream, line, clock_.ticks());
  print_line({stream, rank.role, {&rank}, std::string(line)});
}

void RunPrinter::flush_lines(std::optional<Ticks> until) {
  until ? folder_.flush_due(*until) : folder_.flush();
}

void RunPrinter::print_line(const FoldedLine& line) {
  const plan::RankPlan& rank = *line.ranks.front();
  std::string label = fmt::format("[{} {}", line.role, task_ranges(line.ranks));
  if (hosts_.size() > 1 && line.ranks.size() == 1)
    label += " " + hosts_[static_cast<std::size_t>(rank.node.get())];
  label += "]";
  const Tint tint = line.ranks.size() > 1
                        ? Tint::bold
                        : kTints[static_cast<std::size_t>(rank.rank.get()) % std::size(kTints)];
  if (line.stream == job::OutputStream::out)
    console_.out(console_.tinted_out(label, tint) + " " + line.text);
  else
    console_.err(console_.tinted_err(label, tint) + " " + line.text);
}

void RunPrinter::progress(const Json& report) {
  console_.status_line(progress_line(report, clock_.ticks() - began_, console_.width()));
}

void RunPrinter::problem(const std::string& text) {
  console_.err(console_.tinted_err("dlrun: error: ", Tint::red) + text);
}

void RunPrinter::note(const std::string& text) {
  console_.say("dlrun: " + text);
}

void RunPrinter::print_culprit(const job::Culprit& culprit) {
  console_.err(console_.tinted_err("dlrun: error: ", Tint::red) + culprit.text());
  if (!culprit.last_lines.empty()) console_.err("  its last lines:");
  for (const std::string& line : culprit.last_lines) console_.err("  | " + line);
  std::error_code problem;
  if (!culprit.log_path.empty() && std::filesystem::exists(culprit.log_path, problem))
    console_.err("  hint: its whole output is in " + shown_path(culprit.log_path));
}

void RunPrinter::finished(const plan::Plan& plan, const job::Outcome& outcome) {
  console_.clear_status_line();
  if (outcome.agents_unverified > 0)
    console_.err(fmt::format("dlrun: {} node(s) could not confirm that no process is left",
                             outcome.agents_unverified));
  if (outcome.strays > 0)
    console_.say(fmt::format("dlrun: ended {} process(es) that ranks had left behind", outcome.strays));
  if (!console_.lost().empty())
    problem(fmt::format("not all that the ranks printed could be shown: {}; it is in {}", console_.lost(),
                        shown_path(plan.run_directory + "/logs")));
  const std::string took = format_duration(outcome.time.total);
  const std::string directory = shown_path(plan.run_directory);
  if (outcome.culprit) return print_culprit(*outcome.culprit);
  if (outcome.exit_code != 0)
    return console_.err(
        fmt::format("dlrun: {}; it took {}; run directory {}", job::reason_of(outcome), took, directory));
  const std::string result = result_text(outcome.result);
  console_.say(console_.tinted_err("dlrun: ", Tint::green) + fmt::format("done in {}{}{}; run directory {}",
                                                                         took, result.empty() ? "" : ": ",
                                                                         result, directory));
}

}  // namespace dlrun::cli
