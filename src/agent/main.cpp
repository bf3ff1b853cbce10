// The program dlrun-agent: one node's agent. Its stream is stdin and stdout, or a connection that it makes to
// the head. Launchers start it, on every node of a run, so it is small: the planner and the command line of
// dlrun are not in it. Nothing that it prints is for people but an Error that comes before there is a stream,
// and what --help and --version ask for.
#include <fcntl.h>
#include <unistd.h>

#include "schedulers/node_identity.hpp"
#include "schedulers/scheduler.hpp"
#include "src/agent/arguments.hpp"
#include "src/agent/driver.hpp"
#include "src/agent/folder_lock.hpp"
#include "src/agent/reaper.hpp"
#include "src/agent/report_error.hpp"
#include "src/agent/stacks/read_stacks.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/secret_variable.hpp"
#include "src/base/strings.hpp"
#include "src/base/uncaught.hpp"
#include "src/base/units.hpp"
#include "src/process/init_process.hpp"
#include "src/protocol/call_agent_port.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kConnectTimeout{60};

// The stream gets numbers of its own, so that nothing which writes to stdout by mistake can break it.
// Close-on-exec: a rank that held the stream would keep it open after the agent's death.
int serve_standard_streams(const Environment& environment) {
  const int in = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (in < 0 || out < 0) return to_int(ExitCode::unavailable);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::close(STDIN_FILENO);
  return run_under_reaper(
      [&](CleanupList cleanup) { return serve(environment, in, out, std::nullopt, std::move(cleanup)); },
      {in, out});
}

Result<Token> read_token(const std::string& file, const std::string& secret) {
  const std::string text = file.empty() ? secret : TRY(read_file(file));
  return Token::parse(trim(std::string_view(text).substr(0, text.find('\n'))));
}

// What the node is called here; a name that the scheduler gave it comes first.
AgentIdentity identity_of(const Environment& environment) {
  MachineNames machine = this_machine();
  std::vector<std::string_view> tasks;  // a scheduler's count of its step's tasks comes before an MPI's
  for (const Scheduler& scheduler : all_schedulers()) {
    const auto& [node_name, task] = std::pair(scheduler.variables.node_name, scheduler.variables.task);
    if (!node_name.empty() && environment.find(node_name))
      machine.names.insert(machine.names.begin(), environment.get(node_name));
    if (!task.empty()) tasks.push_back(task);
  }
  tasks.insert(tasks.end(), {"PALS_RANKID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  AgentIdentity identity{.names = machine.names, .addresses = machine.addresses, .task = {}};
  for (const std::string_view name : tasks) {
    if (identity.task) break;
    if (const auto task = parse_integer(environment.get(name), 0, 1'000'000'000))
      identity.task = static_cast<int>(*task);
  }
  return identity;
}

Result<int> run(const std::vector<std::string>& words) {
  if (const auto text = answer_to_person(words)) {
    TRY(write_all(STDOUT_FILENO, *text, "the standard output"));
    return to_int(ExitCode::done);
  }
  if (!words.empty() && words[0] == kReadStacks) {
    TRY(read_stacks({words.begin() + 1, words.end()}));
    return to_int(ExitCode::done);
  }
  const Arguments arguments = TRY(read_arguments(words));
  const std::string secret = take_secret(kTokenVariable);
  const Environment environment = Environment::of_this_process();
  // The copy of dlrun that we are, which others would take for abandoned.
  UniqueFd held;
  if (!arguments.hold.empty()) held = TRY(hold_folder(arguments.hold));
  if (arguments.head.empty()) return serve_standard_streams(environment);
  const Token token = TRY(read_token(arguments.token_file, secret));
  UniqueFd head = TRY(call_agent_port("the head", arguments.head, arguments.port, token,
                                      identity_of(environment), kConnectTimeout));
  const int fd = head.release();
  return run_under_reaper(
      [&](CleanupList cleanup) { return serve(environment, fd, -1, token, std::move(cleanup)); }, {fd});
}

int main(const std::vector<std::string>& words) {
  init_process();
  const Result<int> code = run(words);
  return code ? *code : report_error(code.error());
}

}  // namespace
}  // namespace dlrun::agent

int main(int count, char** words) {
  try {
    return dlrun::agent::main({words + (count > 0 ? 1 : 0), words + count});
  } catch (const std::exception& uncaught) {
    return dlrun::agent::report_error(dlrun::error_of(uncaught));
  }
}
