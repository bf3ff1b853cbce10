// dlrun agent: one node's agent. Its stream is stdin and stdout, or a connection that it makes to the head.
// It is started by launchers; nothing that it prints is for people but an Error that comes before there is a
// stream.
#include <fcntl.h>
#include <unistd.h>

#include "schedulers/node_identity.hpp"
#include "src/agent/agent.hpp"
#include "src/agent/folder_lock.hpp"
#include "src/agent/keeper.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/cli/commands.hpp"
#include "src/process/call_home.hpp"

namespace dlrun::cli {
namespace {

constexpr Seconds kPatience{60};

// The stream gets numbers of its own, so that nothing which writes to stdout by mistake can break it.
// Close-on-exec: a rank that held the stream would keep it open after the agent's death.
int serve_standard_streams(const Environment& environment) {
  const int in = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (in < 0 || out < 0) return to_int(ExitCode::unavailable);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::close(STDIN_FILENO);
  return agent::keep([&] { return agent::serve(environment, in, out); }, {in, out});
}

Result<Token> read_token(const std::string& where) {
  const std::string text = TRY(read_file(where == "-" ? "/dev/stdin" : where));
  return Token::parse(trim(std::string_view(text).substr(0, text.find('\n'))));
}

// What the node is called here; a name that the scheduler gave it comes first.
AgentCard card_of(const Environment& environment) {
  MachineNames machine = this_machine();
  if (const auto name = environment.find("SLURMD_NODENAME"))
    machine.names.insert(machine.names.begin(), *name);
  AgentCard card{.names = machine.names, .addresses = machine.addresses, .task = {}};
  for (const char* name : {"SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (card.task) break;
    if (const auto task = parse_integer(environment.get(name), 0, 1'000'000'000))
      card.task = static_cast<int>(*task);
  }
  return card;
}

}  // namespace

Result<int> serve_agent(const AgentOptions& options, const Context& context) {
  // The copy of dlrun that we are, which others would take for abandoned.
  UniqueFd held;
  if (!options.hold.empty()) held = TRY(agent::hold_folder(options.hold));
  if (options.head.empty()) return serve_standard_streams(context.environment);
  const Token token = TRY(read_token(options.token));
  UniqueFd head = TRY(call_home(split(options.head, ','), Port(static_cast<std::uint16_t>(options.port)),
                                token, card_of(context.environment), kPatience));
  const int fd = head.release();
  return agent::keep([&] { return agent::serve(context.environment, fd, -1); }, {fd});
}

}  // namespace dlrun::cli
