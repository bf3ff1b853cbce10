#include "src/launch/agent_program.hpp"

#include <unistd.h>

namespace dlrun::launch {

Result<std::string> agent_program(const Installation& own) {
  const std::string path = own.agent();
  std::error_code problem;
  if (std::filesystem::is_regular_file(path, problem) && ::access(path.c_str(), X_OK) == 0) return path;
  const bool there = std::filesystem::exists(path, problem);
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = there ? path + " cannot be run" : "there is no " + path,
                    .where = {},
                    .hint = there ? "chmod +x " + path
                                  : "dlrun starts the dlrun-agent in its own folder: install both, or run "
                                    "dlrun from where they are",
                    .also = {}});
}

Result<std::string> agent_program() {
  return agent_program(TRY(this_installation()));
}

}  // namespace dlrun::launch
