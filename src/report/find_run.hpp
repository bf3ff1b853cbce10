// Which run a person means: a path, the name of a folder below runs/, the beginning of one, the name of a job
// (its newest run) or the scheduler's id of a job. Of several that fit in the same way the newest is taken
// only where its name is what they share; else an Error lists them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"
#include "src/report/run_folder.hpp"

namespace dlrun::report {

struct RunEntry {
  std::filesystem::path path;
  FolderKind kind = FolderKind::none;
  std::filesystem::file_time_type made = {};
  std::string folder() const { return path.filename().string(); }
};

/// All runs, submissions and chains below runs/ of the folder, the newest first.
std::vector<RunEntry> all_runs(const std::filesystem::path& here);

/// Folders below runs/, or runs/ itself, into which we may not look.
std::vector<std::filesystem::path> closed_folders(const std::filesystem::path& here);

/// `asked` is empty: the newest one. An Error names what is near.
Result<RunEntry> find_run(const std::filesystem::path& here, const std::string& asked);

/// "small" of "small-20261129-193333-ed15" and of "submit-small-20261129-193333-ed15". Pure.
std::string job_name_of(const std::string& folder);

/// The scheduler's job that a run or a submission belongs to; empty where there is none.
std::string scheduler_job_of(const RunEntry& entry);

}  // namespace dlrun::report
