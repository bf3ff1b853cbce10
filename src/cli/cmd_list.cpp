#include "src/cli/cmd_list.hpp"

#include <algorithm>
#include <limits>

#include "src/base/units.hpp"
#include "src/cli/run_lines.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/cli/usage_error.hpp"
#include "src/cli/world_of.hpp"

namespace dlrun::cli {
namespace {

std::string check_count(const std::string& text) {
  const auto count = parse_integer(text, 1, std::numeric_limits<int>::max());
  return count ? "" : count.error().what;
}

constexpr FlagRow<ListCommand> kListFlags[] = {
    {{.name = "-n,--newest", .value = "N", .help = "only the N newest", .check = check_count},
     &ListCommand::newest},
};

Json document(const std::vector<report::RunView>& views, const std::vector<std::filesystem::path>& closed,
              Instant now) {
  Json runs = Json::array(), folders = Json::array();
  for (const report::RunView& view : views) runs.push_back(report::to_json(view, now));
  for (const std::filesystem::path& folder : closed) folders.push_back(folder.string());
  return {{"schema", "dlrun.list/1"}, {"runs", std::move(runs)}, {"closed", std::move(folders)}};
}

}  // namespace

const char* const ListCommand::kExamples = R"(Examples:
  dlrun list                   runs, submissions and chains below runs/, the newest first
  dlrun list -n 10             the ten newest
  dlrun list --json            the same as a document)";

void ListCommand::add(Arguments& arguments) {
  arguments.argument("DIR", folder, "the folder that has runs/ (default: the current one)");
  arguments.flags<ListCommand>(kListFlags, *this);
}

Result<void> ListCommand::finish(const ExtraArguments&) {
  std::error_code problem;
  if (folder.empty() || std::filesystem::is_directory(folder, problem)) return {};
  return fail(usage_error("list", fmt::format("'{}' is not a folder", folder)));
}

Result<int> ListCommand::run(const Context& context) {
  std::error_code problem;
  const std::filesystem::path here =
      folder.empty() ? std::filesystem::current_path(problem) : std::filesystem::absolute(folder);
  std::vector<report::RunEntry> entries = report::resolved(report::all_runs(here));
  if (!newest.empty())
    entries.resize(std::min(entries.size(), static_cast<std::size_t>(TRY(
                                                parse_integer(newest, 1, std::numeric_limits<int>::max())))));
  const WorldOf world_of(context);
  const auto views = report::views_of(entries, report::Depth::brief, world_of.world());
  const std::vector<std::filesystem::path> closed = report::closed_folders(here);
  const Instant now = SystemClock().now();
  if (context.common.json) {
    TRY(context.console.data(to_pretty_text(document(views, closed, now))));
    return 0;
  }
  for (const std::filesystem::path& folder : closed)
    context.console.say("dlrun: cannot look into " + plain_text(folder.string()) + ": permission denied");
  if (views.empty() && closed.empty())
    context.console.say("dlrun: there is no run below " + (here / "runs").string());
  if (views.empty()) return 0;
  for (const std::string& line : list_lines(views, now)) context.console.out(line);
  return 0;
}

}  // namespace dlrun::cli
