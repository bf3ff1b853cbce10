#include "src/cli/cmd_stacks.hpp"

#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/token.hpp"
#include "src/base/units.hpp"
#include "src/cli/stack_lines.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/cli/usage_error.hpp"
#include "src/cli/world_of.hpp"
#include "src/record/stacks_request.hpp"
#include "src/report/head_life.hpp"
#include "src/report/run_view.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<StacksCommand> kStacksFlags[] = {
    {{.name = "--threads", .help = "also show the other threads of the ranks"}, &StacksCommand::threads},
};

// Agents have 10 s for their ranks, the head 15 s for the agents; files are looked at each second.
constexpr Seconds kAnswerLimit{25}, kPollInterval{0.1};

using report::RunState;
using report::RunView;

Result<Json> read_document(const std::filesystem::path& run) {
  const std::string path = (run / "stacks.json").string();
  constexpr std::size_t longest = 64 << 20;
  return parse_json(TRY(read_regular_file(path, longest)), path);
}

std::string request_of(const Result<Json>& document) {
  return document ? field<std::string>(*document, "request", "stacks.json").value_or("") : std::string();
}

tl::unexpected<Error> ended_meanwhile(const RunView& view) {
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} ended before its stacks were read", view.entry.folder()),
                    .hint = fmt::format("dlrun status {} shows how it ended", view.entry.folder())});
}

Result<Json> ask_head(const RunView& view, const report::World& world) {
  constexpr std::size_t id_length = 16;
  const std::string id = Token::random().text().substr(0, id_length);
  TRY(report::check_head_works_in({view.run, *view.head}, view.planned, world.pause));
  TRY(job::request_stacks(view.run, id));
  for (Seconds waited{0}; waited < kAnswerLimit; waited += kPollInterval) {
    world.pause(kPollInterval);
    auto document = read_document(view.run);
    const std::string answered = request_of(document);
    if (answered == id) return document;
    if (std::error_code problem; std::filesystem::exists(view.run / "record.json", problem))
      return ended_meanwhile(view);
    // Another request took the place of this one, and has its answer.
    const std::string asked = job::requested_stacks(view.run);
    if (asked != id && asked == answered) TRY(job::request_stacks(view.run, id)), waited = Seconds(0);
  }
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} has not answered within {}", view.entry.folder(),
                                        format_duration(kAnswerLimit)),
                    .hint = fmt::format("dlrun status {} shows whether it still runs", view.entry.folder())});
}

// What was read before its end, if anything was.
Result<Json> read_of_the_past(const RunView& view) {
  auto document = read_document(view.run);
  if (document) return document;
  return fail(
      Error{.kind = view.standing.state == RunState::lost ? ErrorKind::lost : ErrorKind::unavailable,
            .what = fmt::format("{} is over ({}), and no stacks of it were read", view.entry.folder(),
                                word_of(view.standing.state)),
            .hint = "stacks can be read while a run is under way; those of a hung run are in stacks.json"});
}

Result<Json> document_of(const RunView& view, const report::World& world) {
  if (is_over(view.standing.state) || waits_again(view)) return read_of_the_past(view);
  if (!view.run.empty() && view.head) return ask_head(view, world);
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} has not begun ({}): it has no ranks", view.entry.folder(),
                                        word_of(view.standing.state)),
                    .hint = "dlrun status " + view.entry.folder()});
}

// The document has been shown with its reasons.
int code_of(const Json& document) {
  return field<std::size_t>(document, "read", "stacks.json").value_or(0) > 0 ? to_int(ExitCode::done)
                                                                             : to_int(ExitCode::unavailable);
}

}  // namespace

const char* const StacksCommand::kExamples = R"(Examples:
  dlrun stacks small                        where the ranks of the newest run of job small are now
  dlrun stacks 4711 --threads               of the scheduler's job 4711, with all threads
  dlrun stacks runs/small-20261129-193333-ed15 --json)";

void StacksCommand::add(Arguments& arguments) {
  arguments.argument("RUN", asked, "a path, a folder below runs/, a job's name or its id");
  arguments.flags<StacksCommand>(kStacksFlags, *this);
}

Result<void> StacksCommand::finish(const ExtraArguments&) {
  if (!asked.empty()) return {};
  return fail(usage_error("stacks", "the run is missing", "dlrun stacks RUN; dlrun list shows the runs"));
}

Result<int> StacksCommand::run(const Context& context) {
  std::error_code problem;
  const report::RunEntry entry = TRY(report::find_run(std::filesystem::current_path(problem), asked));
  const WorldOf world_of(context);
  const RunView view = report::view_of(report::resolved(entry), world_of.world());
  const Json document = TRY(document_of(view, world_of.world()));
  if (context.common.json)
    TRY(context.console.data(to_pretty_text(document)));
  else
    for (const std::string& line : stack_lines(document, threads ? ShownThreads::all : ShownThreads::first))
      context.console.out(plain_text(line));
  return code_of(document);
}

}  // namespace dlrun::cli
