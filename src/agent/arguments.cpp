#include "src/agent/arguments.hpp"

#include <algorithm>
#include <array>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::agent {
namespace {

constexpr std::int64_t kHighestPort = 65535;

tl::unexpected<Error> usage(const std::string& what) {
  return fail({.kind = ErrorKind::usage,
               .what = what,
               .hint = "dlrun starts this program itself: dlrun-agent [--head A,B --port N [--token FILE]] "
                       "[--hold DIR]"});
}

Result<void> take(Arguments& out, const std::string& flag, const std::string& value) {
  static const std::array<std::string_view, 4> flags{"--head", "--port", "--token", "--hold"};
  if (std::find(flags.begin(), flags.end(), flag) == flags.end())
    return usage(fmt::format("unknown flag '{}'", flag));
  if (value.empty()) return usage(flag + " has no value");
  if (flag == "--head") {
    out.head = split(value, ',');
  } else if (flag == "--port") {
    const auto port = parse_integer(value, 1, kHighestPort);
    if (!port) return usage(fmt::format("--port: '{}' is no port", value));
    out.port = Port(static_cast<std::uint16_t>(*port));
  } else if (flag == "--token") {
    out.token_file = value;
  } else {
    out.hold = value;
  }
  return {};
}

}  // namespace

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
