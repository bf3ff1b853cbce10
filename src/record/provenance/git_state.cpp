// {"commit": .., "changed_files": N, "changes": ..} of the repository that the job's folder is in; null where
// it is in none, or git is not there. `changes` is a number that differs where the changed lines do.
#include <filesystem>

#include "src/base/strings.hpp"
#include "src/process/command.hpp"
#include "src/record/provenance/facts.hpp"

namespace dlrun::job {
namespace {

// Without asking git, which costs more than the end of a short run.
bool in_repository(std::filesystem::path directory, const Environment& environment) {
  std::error_code ignored;
  for (; !directory.empty(); directory = directory.parent_path()) {
    if (std::filesystem::exists(directory / ".git", ignored)) return true;
    if (directory == directory.parent_path()) break;
  }
  return environment.find("GIT_DIR").has_value();
}

// FNV-1a, for texts that nobody forges.
std::string digest(std::string_view text) {
  std::uint64_t out = 0xcbf29ce484222325;
  for (const char c : text) out = (out ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", out);
}

}  // namespace

Json find_git_state(const plan::Plan& plan, const plan::JobSpec&, const Environment& environment) {
  const std::string& directory = plan.working_directory;
  if (!in_repository(directory, environment)) return nullptr;
  const auto git = [&](const Argv& words) -> std::optional<std::string> {
    Argv argv{"git", "-C", directory};
    argv.insert(argv.end(), words.begin(), words.end());
    const auto output = run_command({.argv = argv, .environment = environment, .limit = Seconds(10)});
    if (!output || !output->status.success()) return std::nullopt;
    return output->out;
  };
  const auto commit = git({"rev-parse", "HEAD"});
  const auto status = commit ? git({"status", "--porcelain", "--untracked-files=no"}) : std::nullopt;
  if (!status) return nullptr;
  const auto changes = status->empty() ? std::nullopt : git({"diff", "HEAD", "--no-ext-diff", "--no-color"});
  return {{"commit", std::string(trim(*commit))},
          {"changed_files", split(*status, '\n').size() - 1},
          {"changes", changes ? Json(digest(*changes)) : Json(nullptr)}};
}

}  // namespace dlrun::job
