#include "src/process/process_state.hpp"

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/process/descendants.hpp"

namespace dlrun {

// "pid (name) S ppid ...": the name may hold blanks and brackets, so the last ')' counts.
std::optional<ProcessState> process_state(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return std::nullopt;
  const std::size_t open = text->find('('), close = text->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= text->size())
    return std::nullopt;
  ProcessState out{.pid = pid, .state = (*text)[close + 2], .name = text->substr(open + 1, close - open - 1)};
  const std::vector<std::string> fields = split(std::string_view(*text).substr(close + 2), ' ');
  if (const auto parent = parse_integer(fields.size() > 1 ? fields[1] : "", 0, 1 << 30))
    out.parent = static_cast<pid_t>(*parent);
  const std::string waits(trim(read_file(fmt::format("/proc/{}/wchan", pid)).value_or("")));
  if (waits != "0") out.waits = waits;
  return out;
}

std::vector<ProcessState> states_of_tree(pid_t root) {
  std::vector<ProcessState> out;
  if (auto first = process_state(root)) out.push_back(std::move(*first));
  for (const pid_t pid : descendants_of(root))
    if (auto state = process_state(pid)) out.push_back(std::move(*state));
  return out;
}

}  // namespace dlrun
