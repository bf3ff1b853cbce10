// RunFolder: what the files of a run directory say, as they stand. It is read while its head writes it, after
// the head died in the middle of a line, and after years: a file that is not there is null, one that does not
// read is null and told in `problems`, and a folder without plan and record may still be a run that begins.
// It judges nothing: how the run stands is run_state.hpp's to say.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/json.hpp"
#include "src/report/json_lines.hpp"

namespace dlrun::report {

/// What a folder is, by the files in it.
enum class FolderKind { none, run, submission, chain };
FolderKind kind_of(const std::filesystem::path& folder);

/// A folder, of another user maybe, into which we may not look: it may be a run all the same.
bool is_closed(const std::filesystem::path& folder);
/// What to tell of it.
Error closed_error(const std::filesystem::path& folder);

struct RunFolder {
  std::filesystem::path path;
  Json plan, allocation;  // as decided before anything started; null: not there yet
  Json status;            // status.json: what the head says of itself while it lives, and last at its end
  Json record;            // null: the run has not ended, or its head died
  std::vector<std::string> problems = {};  // files that are there and do not read
};

/// Which files are read: a plan of thousands of ranks takes its time.
enum class Depth { brief, whole };  // brief: without plan and allocation

/// Null where there is no such file; one that does not read is a problem. Never waits for a FIFO.
Json read_or_null(const std::filesystem::path& file, std::vector<std::string>& problems);

/// An Error where the folder is no run directory.
Result<RunFolder> read_run_folder(const std::filesystem::path& path, Depth depth = Depth::whole);

/// The events of all attempts, in order: those that can be read. What cannot is one of the `problems`.
std::vector<Json> read_events(const std::filesystem::path& run_directory, std::vector<std::string>& problems);
/// Where the runtime writes its metrics: lines of {"step": .., "loss": .., ...}.
std::filesystem::path metrics_file(const std::filesystem::path& run_directory);

/// Run directories of the links of a chain or of the run of a submission's folder, oldest first: those that
/// exist.
std::vector<std::filesystem::path> link_directories(const std::filesystem::path& chain_folder);

}  // namespace dlrun::report
