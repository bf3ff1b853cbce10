// The shared libraries as the program's loader has found them on this node, each with the number that its
// linker gave its content; where it has none, its length tells.
#include <filesystem>

#include "src/agent/provenance/facts.hpp"
#include "src/process/elf_build_id.hpp"

namespace dlrun::agent {
namespace {

constexpr std::size_t kDigits = 16;

Json build_of(const std::string& file) {
  const auto id = build_id(file);
  if (id && !id->empty()) return id->substr(0, kDigits);
  std::error_code problem;
  const auto bytes = std::filesystem::file_size(file, problem);
  return problem ? Json(nullptr) : Json(fmt::format("{} bytes", bytes));
}

}  // namespace

Json find_libraries(const ProgramSeen& program) {
  Json out = Json::object();
  for (const std::string& file : program.libraries) out[file] = build_of(program.root + file);
  return out;
}

}  // namespace dlrun::agent
