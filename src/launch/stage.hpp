// Stage: a copy of dlrun for nodes that do not have it where the head has it. What an agent needs travels as
// one archive; a few lines of shell on the node unpack it into a private folder (0700), run the agent from
// there and remove the folder when the agent is gone, however that ended. (Where the shell is killed too, the
// next agent on that node removes it: the agent holds the folder's lock.) Libraries that the
// installation brings are copied, the system's are not: a node without them says which one it lacks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/install.hpp"
#include "src/base/result.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::launch {

// The exit code of the lines below where no agent was started; unlike any that a shell gives by itself.
inline constexpr int kNotStaged = 125;

// What is copied, by its place below the copy's root, in the shape of an installation.
struct StagedFile {
  std::filesystem::path from;
  std::string to;
};
std::vector<StagedFile> files_to_stage(const plan::Plan& plan, const Installation& own);

// Writes the archive, for `tar -xz`. An Error where a file or the head's tar is missing.
Result<void> write_archive(const std::vector<StagedFile>& files, const std::string& path,
                           const Environment& environment);

// Shell commands for the node, on one line and without single quotes. `source` writes the archive to its
// standard output; `arguments` are added to the agent's, as the shell is to read them.
std::string run_copy(std::string_view source, std::string_view arguments);

// A whole script for launchers that are commands, whose arguments are the agent's own: dlrun at `program`,
// else the copy out of `archive`, a file that every node sees.
std::string stage_script(const std::string& program, const std::string& archive);

}  // namespace dlrun::launch
