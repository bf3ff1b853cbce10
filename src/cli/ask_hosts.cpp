#include "src/cli/ask_hosts.hpp"

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"
#include "src/base/token.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/cli/usage_error.hpp"
#include "src/cli/world_of.hpp"
#include "src/report/head_life.hpp"

namespace dlrun::cli {
namespace {

constexpr Seconds kPollInterval{0.1};

using report::RunView;

// Null where there is none, or none that can be read now.
Json read_answers(const RunView& view) {
  constexpr std::size_t longest = 16 << 20;
  const std::string path = job::host_answers_file(view.run).string();
  const auto text = read_regular_file(path, longest);
  if (!text) return Json();
  const auto json = parse_json(*text, path);
  if (!json || !json->is_object() || !json->contains("answers")) return Json();
  return (*json)["answers"];
}

Json answer_to(const Json& answers, const std::string& id) {
  return answers.is_object() && answers.contains(id) ? answers[id] : Json();
}

bool is_over(const Json& answer) {
  return answer.is_object() && field<std::string>(answer, "state", "hosts.json").value_or("") != "waiting";
}

tl::unexpected<Error> ended_meanwhile(const RunView& view, job::HostsChange change) {
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} ended before the nodes had {}", view.entry.folder(),
                                        change == job::HostsChange::leave ? "left" : "joined"),
                    .hint = fmt::format("dlrun status {} shows how it ended", view.entry.folder())});
}

Result<Json> await_answer(const RunView& view, const job::HostsRequest& request, const report::World& world) {
  for (;;) {
    world.pause(kPollInterval);
    const Json answers = read_answers(view);
    const Json mine = answer_to(answers, request.id);
    if (is_over(mine)) return mine;
    if (std::error_code problem; std::filesystem::exists(view.run / "record.json", problem))
      return ended_meanwhile(view, request.change);
    // Another request took the place of this one before the head saw it.
    const auto there = job::requested_hosts(view.run);
    if (mine.is_null() && there && there->id != request.id && !answer_to(answers, there->id).is_null())
      TRY(job::request_hosts(view.run, request));
  }
}

ErrorKind kind_of(int code) {
  for (const ErrorKind kind : {ErrorKind::usage, ErrorKind::input, ErrorKind::allocation,
                               ErrorKind::unavailable, ErrorKind::lost, ErrorKind::io})
    if (to_int(exit_code(kind)) == code) return kind;
  return ErrorKind::internal;
}

Error error_of(const Json& answer, const RunView& view) {
  const Json error = field<Json>(answer, "error", "hosts.json").value_or(Json::object());
  const auto text = [&](const char* name) {
    return plain_text(field<std::string>(error, name, "hosts.json").value_or(""));
  };
  return {.kind = kind_of(field<int>(error, "exit_code", "hosts.json").value_or(0)),
          .what = fmt::format("{}: {}", view.entry.folder(), text("what")),
          .where = text("where"),
          .hint = text("hint")};
}

Result<void> check_is_on(const RunView& view) {
  if (view.standing.state == report::RunState::lost)
    return fail(ErrorKind::lost, "{}: {}", view.entry.folder(), view.standing.reason);
  if (!is_over(view.standing.state) && !view.run.empty() && view.head) return {};
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} has no ranks now ({}): no node can leave or join",
                                        view.entry.folder(), word_of(view.standing.state)),
                    .hint = "dlrun status " + view.entry.folder()});
}

// The forms of the command that asked: dlrun.stop/1, dlrun.grow/1.
Result<void> tell(const RunView& view, const Json& answer, job::HostsChange change, const Context& context) {
  Json hosts = field<Json>(answer, "hosts", "hosts.json").value_or(Json::object());
  if (!hosts.is_object()) hosts = Json::object();
  std::vector<std::string> texts;
  for (const auto& [host, said] : hosts.items())
    texts.push_back(fmt::format("{}: {}", host, field<std::string>(said, "text", "hosts.json").value_or("")));
  for (const std::string& text : texts) context.console.say("dlrun: " + plain_text(text));
  if (!context.common.json) return {};
  const bool leaves = change == job::HostsChange::leave;
  return context.console.data(to_pretty_text({{"schema", leaves ? "dlrun.stop/1" : "dlrun.grow/1"},
                                              {"run", view.entry.folder()},
                                              {"directory", view.entry.path.string()},
                                              {"state", word_of(view.standing.state)},
                                              {leaves ? "stop" : "grow", leaves ? "left" : "joined"},
                                              {"text", join(texts, "; ")},
                                              {"hosts", hosts}}));
}

}  // namespace

Result<std::vector<std::string>> hosts_of_flag(const std::string& flag, const std::string& text) {
  std::vector<std::string> out;
  for (const HostName& host : TRY(expand_hostlist(text))) out.push_back(host.get());
  if (out.empty()) return fail(ErrorKind::usage, "{} has no host", flag);
  return out;
}

Result<int> ask_hosts(const RunView& view, job::HostsChange change, const std::vector<std::string>& hosts,
                      const Context& context) {
  constexpr std::size_t id_length = 16;
  TRY(check_is_on(view));
  const WorldOf world_of(context);
  TRY(report::check_head_works_in({view.run, *view.head}, view.planned, world_of.world().pause));
  const job::HostsRequest request{
      .id = Token::random().text().substr(0, id_length), .change = change, .hosts = hosts};
  TRY(job::request_hosts(view.run, request));
  const Json answer = TRY(await_answer(view, request, world_of.world()));
  if (field<std::string>(answer, "state", "hosts.json").value_or("") != "done")
    return fail(error_of(answer, view));
  TRY(tell(view, answer, change, context));
  return to_int(ExitCode::done);
}

}  // namespace dlrun::cli
