#include "src/cli/cmd_status.hpp"

#include "src/base/strings.hpp"
#include "src/cli/cmd_chain.hpp"
#include "src/cli/run_lines.hpp"
#include "src/cli/world_of.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<StatusCommand> kStatusFlags[] = {
    {{.name = "-w,--watch", .help = "show it again every two seconds, until the run is over"},
     &StatusCommand::watch},
};

constexpr std::string_view kHomeAndClear = "\x1b[H\x1b[J";

std::string text_of(const std::vector<std::string>& lines) {
  return join(lines, "\n") + "\n";
}

// Over the whole terminal; elsewhere a line, or a document, a refresh.
Result<void> show_again(const report::RunView& view, Instant now, const Context& context) {
  if (context.common.json) return context.console.data(to_text(report::to_json(view, now)) + "\n");
  if (!context.console.shows_out_on_terminal()) {
    context.console.out(status_line(view, now));
    return {};
  }
  return context.console.data(std::string(kHomeAndClear) + text_of(status_lines(view, now)));
}

Result<void> show_once(const report::RunView& view, Instant now, const Context& context) {
  if (context.common.json) return context.console.data(to_pretty_text(report::to_json(view, now)));
  for (const std::string& line : status_lines(view, now)) context.console.out(line);
  if (view.chain) print_chain(*view.chain, job::ChainFolder(view.entry.path), context.console);
  return {};
}

// A submission stands for its run as soon as there is one.
Result<int> watch_run(const report::RunEntry& entry, const Context& context) {
  const WorldOf world_of(context);
  for (;;) {
    const report::RunView view = report::view_of(report::resolved(entry), world_of.world());
    TRY(show_again(view, SystemClock().now(), context));
    if (is_over(view.standing.state) || context.console.out_is_gone()) return 0;
    world_of.world().pause(job::kHeadStatusInterval);
  }
}

}  // namespace

const char* const StatusCommand::kExamples = R"(Examples:
  dlrun status                       how the newest run below runs/ stands
  dlrun status small --watch         the newest run of job small, drawn again until it is over
  dlrun status 4711                  the run of the scheduler's job 4711, or its place in the queue
  dlrun status runs/small-20261129-193333-ed15 --json)";

void StatusCommand::add(Arguments& arguments) {
  arguments.argument("RUN", asked,
                     "a path, a folder below runs/, a job's name or its id (default: the newest run)");
  arguments.flags<StatusCommand>(kStatusFlags, *this);
}

Result<int> StatusCommand::run(const Context& context) {
  std::error_code problem;
  const report::RunEntry entry = TRY(report::find_run(std::filesystem::current_path(problem), asked));
  if (watch) return watch_run(entry, context);
  const WorldOf world_of(context);
  const report::RunView view = report::view_of(report::resolved(entry), world_of.world());
  TRY(show_once(view, SystemClock().now(), context));
  return 0;
}

}  // namespace dlrun::cli
