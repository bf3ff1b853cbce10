#include "src/agent/arguments.hpp"

#include <algorithm>
#include <array>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/base/version.hpp"

namespace dlrun::agent {
namespace {

constexpr std::int64_t kMaxPort = 65535;

constexpr std::string_view kUsage = "dlrun-agent [--head A,B --port N [--token FILE]] [--hold DIR]";

tl::unexpected<Error> usage(const std::string& what) {
  return fail({.kind = ErrorKind::usage,
               .what = what,
               .hint = fmt::format("dlrun starts this program itself: {}", kUsage)});
}

Result<void> take(Arguments& out, const std::string& flag, const std::string& value) {
  static const std::array<std::string_view, 4> flags{"--head", "--port", "--token", "--hold"};
  if (std::find(flags.begin(), flags.end(), flag) == flags.end())
    return usage(fmt::format("unknown flag '{}'", flag));
  if (value.empty()) return usage(flag + " has no value");
  if (flag == "--head") {
    out.head = split(value, ',');
  } else if (flag == "--port") {
    const auto port = parse_integer(value, 1, kMaxPort);
    if (!port) return usage(fmt::format("--port: '{}' is not a port number in [1, {}]", value, kMaxPort));
    out.port = Port(static_cast<std::uint16_t>(*port));
  } else if (flag == "--token") {
    out.token_file = value;
  } else {
    out.hold = value;
  }
  return {};
}

}  // namespace

std::optional<std::string> answer_to_person(const std::vector<std::string>& words) {
  if (words.size() != 1) return std::nullopt;
  if (words[0] == "--version") return fmt::format("dlrun-agent {}\n", kVersion);
  if (words[0] != "--help" && words[0] != "-h") return std::nullopt;
  return fmt::format(
      "Usage: {}\n\n"
      "The agent of one node: it starts the ranks of the node, serves their MPI and ends them. dlrun\n"
      "starts it on every node of a run; nobody else needs to.\n\n"
      "  --head A,B     addresses of the head; without it, agent and head communicate over stdin and stdout\n"
      "  --port N       port of the head\n"
      "  --token FILE   token that proves the agent to the head (default: the one in DLRUN_AGENT_TOKEN)\n"
      "  --hold DIR     folder of this copy of dlrun; while it is held, no other run removes it\n"
      "  --read-stacks DIR RANK:PID...  print which functions these processes are in; agents use it\n"
      "  --version      print the version; a head accepts only agents of its own version\n\n"
      "See dlrun-agent(1).\n",
      kUsage);
}

Result<Arguments> read_arguments(const std::vector<std::string>& words) {
  Arguments out;
  for (std::size_t i = 0; i < words.size(); i += 2)
    TRY(take(out, words[i], i + 1 < words.size() ? words[i + 1] : std::string()));
  const bool calls = !out.head.empty();
  if (calls != (out.port.get() != 0)) return usage("--head and --port belong together");
  if (!calls && !out.token_file.empty()) return usage("--token is for a --head");
  return out;
}

}  // namespace dlrun::agent
