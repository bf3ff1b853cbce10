#include "src/cli/cmd_report.hpp"

#include <algorithm>
#include <filesystem>

#include "src/base/install.hpp"
#include "src/base/json.hpp"
#include "src/base/unique_fd.hpp"
#include "src/base/units.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/cli/usage_error.hpp"
#include "src/cli/write_output.hpp"
#include "src/report/find_run.hpp"
#include "src/report/page/page.hpp"
#include "src/report/page/report_data.hpp"

namespace dlrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUsualBytes = 1'000'000;

constexpr FlagRow<ReportCommand> kReportFlags[] = {
    {{.name = "-o,--output", .value = "FILE", .help = "write the page to this file; - is standard output"},
     &ReportCommand::output},
};

// The folder of a run as it was named: "runs/flowers-17/" is flowers-17.
std::string base_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

// A folder itself, else a run as the other commands name it.
Result<fs::path> folder_of(const std::string& name) {
  std::error_code problem;
  if (!name.empty() && fs::is_directory(name, problem)) return fs::path(name);
  return TRY(report::find_run(fs::current_path(problem), name)).path;
}

std::string title_of(const Json& data) {
  std::string names;
  for (const Json& run : data["runs"]) {
    const std::string name = run["name"].is_string() ? run["name"].get<std::string>() : "run";
    if (names.find(name) == std::string::npos) names += (names.empty() ? "" : ", ") + name;
  }
  return names + " · dlrun report";
}

void show_problems(const Json& data, Console& console) {
  for (const Json& run : data["runs"])
    for (const Json& problem : run["problems"])
      console.say("dlrun: " + plain_text(problem.get<std::string>(), Newlines::kept));
}

Result<void> write_page(const std::string& page, const std::string& file, const Context& context) {
  if (file == "-") return context.console.data(page);
  TRY(write_output(file, page));
  context.console.out(plain_text(file));
  if (page.size() > kUsualBytes)
    context.console.say(
        fmt::format("dlrun: {} has {}: name fewer runs for a smaller page", file, format_size(page.size())));
  return {};
}

}  // namespace

const char* const ReportCommand::kExamples = R"(Examples:
  dlrun report                                              the newest run
  dlrun report runs/flowers-17                              writes flowers-17.html
  dlrun report runs/flowers-17 runs/flowers-18 -o both.html compare two runs in one page
  dlrun report --json runs/flowers-17                       the data of the page)";

void ReportCommand::add(Arguments& arguments) {
  arguments.flags<ReportCommand>(kReportFlags, *this);
  arguments.take_extra();
}

Result<void> ReportCommand::finish(const ExtraArguments& extra) {
  runs = extra.of_command;
  runs.insert(runs.end(), extra.of_program.begin(), extra.of_program.end());
  if (std::find(runs.begin(), runs.end(), "") != runs.end())
    return fail(usage_error("report", "a run's name is empty", "dlrun list shows the runs"));
  if (runs.empty()) runs.emplace_back();  // the newest
  return {};
}

Result<int> ReportCommand::run(const Context& context) {
  std::vector<report::RunFiles> read;
  std::vector<fs::path> folders;
  for (const std::string& name : runs) {
    folders.push_back(TRY(folder_of(name)));
    read.push_back(TRY(report::read_run_files(folders.back())));
  }
  const Json data = report::report_json(read, {.made = SystemClock().now()});
  show_problems(data, context.console);
  if (context.common.json) {
    TRY(context.console.data(to_pretty_text(data)));
    return 0;
  }
  const fs::path parts = TRY(this_installation()).data / "report";
  const std::string page =
      TRY(report::make_page({.parts = parts, .shell = "report.html", .title = title_of(data)}, data));
  TRY(write_page(page, output.empty() ? base_name(folders.front()) + ".html" : output, context));
  return 0;
}

}  // namespace dlrun::cli
