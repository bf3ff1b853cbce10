#include "src/agent/own_program.hpp"

namespace dlrun::agent {

namespace fs = std::filesystem;

std::string own_program(const Argv& argv) {
  const auto own = this_installation();
  return own ? own_program(argv, *own) : std::string();
}

std::string own_program(const Argv& argv, const Installation& own) {
  const fs::path planned = argv.empty() ? "" : argv.front();
  std::error_code problem;
  if (planned.filename() != "dlrun-train" || !planned.is_absolute() || fs::exists(planned, problem))
    return {};
  const fs::path copy = own.bin / planned.filename();
  return fs::exists(copy, problem) ? copy.string() : std::string();
}

}  // namespace dlrun::agent
