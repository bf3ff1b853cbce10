#include "src/cli/cmd_diff.hpp"

#include "src/base/exit_code.hpp"
#include "src/base/json.hpp"
#include "src/base/units.hpp"
#include "src/cli/diff_lines.hpp"
#include "src/cli/usage_error.hpp"
#include "src/report/diff/diff.hpp"
#include "src/report/run_view.hpp"

namespace dlrun::cli {
namespace {

constexpr int kDiffers = 1;  // as diff(1) says it

Result<std::int64_t> percent_of(const std::string& text) {
  return parse_integer(text, 0, 99);  // from 100 on, all numbers are equal
}

std::string check_percent(const std::string& text) {
  const auto percent = percent_of(text);
  return percent ? "" : percent.error().what;
}

constexpr FlagRow<DiffCommand> kDiffFlags[] = {
    {{.name = "--margin",
      .value = "PERCENT",
      .help = "times and rates that differ by less are equal (default: 10)",
      .check = check_percent},
     &DiffCommand::margin},
};

Result<report::DiffRun> read(const std::string& name) {
  std::error_code problem;
  const report::RunEntry entry = TRY(report::find_run(std::filesystem::current_path(problem), name));
  return report::read_diff_run(report::resolved(entry));
}

}  // namespace

const char* const DiffCommand::kExamples = R"(Examples:
  dlrun diff flowers-20261122-090000-aaaa flowers-20261129-090000-bbbb     what changed in a week
  dlrun diff runs/a runs/b --margin 25                           times within 25 % are equal
  dlrun diff runs/a runs/b --json                                the same as a document)";

void DiffCommand::add(Arguments& arguments) {
  arguments.argument("A", a, "a run: a path, a folder below runs/, a job's name or its id");
  arguments.argument("B", b, "the run that is compared with it");
  arguments.flags<DiffCommand>(kDiffFlags, *this);
}

Result<void> DiffCommand::finish(const ExtraArguments&) {
  if (!a.empty() && !b.empty()) return {};
  return fail(usage_error("diff", "two runs are needed", "dlrun diff A B; dlrun list shows the runs"));
}

Result<int> DiffCommand::run(const Context& context) {
  const report::DiffRun left = TRY(read(a)), right = TRY(read(b));
  const report::RunDiff diff =
      report::diff_of(left, right, static_cast<double>(TRY(percent_of(margin))) / 100);
  if (context.common.json)
    TRY(context.console.data(to_pretty_text(report::to_json(diff, left, right))));
  else
    for (const std::string& line : diff_lines(diff, left, right)) context.console.out(line);
  if (!diff.differences.empty()) return kDiffers;
  return to_int(report::is_whole(left) && report::is_whole(right) ? ExitCode::done : ExitCode::input);
}

}  // namespace dlrun::cli
