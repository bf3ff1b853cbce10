#include "src/base/state_folder.hpp"

#include <algorithm>

namespace dlrun {

std::filesystem::path state_folder(const Environment& environment) {
  if (const auto folder = environment.find("XDG_STATE_HOME"); folder && folder->starts_with('/'))
    return std::filesystem::path(*folder) / "dlrun";
  return std::filesystem::path(environment.get("HOME", "/nonexistent")) / ".local" / "state" / "dlrun";
}

std::string state_file_name(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '/', '_');
  return out.empty() || out.front() == '.' ? "_" + out : out;
}

}  // namespace dlrun
