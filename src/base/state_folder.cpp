#include "src/base/state_folder.hpp"

#include <algorithm>

namespace dlrun {

std::optional<std::filesystem::path> user_folder(const Environment& environment, std::string_view variable,
                                                 std::string_view otherwise) {
  if (const auto folder = environment.find(variable); folder && folder->starts_with('/'))
    return std::filesystem::path(*folder) / "dlrun";
  if (const auto home = environment.find("HOME"); home && home->starts_with('/'))
    return std::filesystem::path(*home) / otherwise / "dlrun";
  return std::nullopt;
}

std::optional<std::filesystem::path> state_folder(const Environment& environment) {
  return user_folder(environment, "XDG_STATE_HOME", ".local/state");
}

Error no_state_folder() {
  return {.kind = ErrorKind::io,
          .what = "there is no folder to remember it in: neither XDG_STATE_HOME nor HOME is an absolute path",
          .where = {},
          .hint = "set HOME",
          .also = {}};
}

std::string state_file_name(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '/', '_');
  return out.empty() || out.front() == '.' ? "_" + out : out;
}

}  // namespace dlrun
