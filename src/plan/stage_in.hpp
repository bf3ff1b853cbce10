// StageIn: what a job file's section `stage` copies to each node before the ranks start: a file, a folder or
// an archive, and the place it goes to. Ranks find every item by one name below one folder (DLRUN_STAGE), the
// same on all nodes, wherever the copy is there; so the plan knows the path, and a node's agent only decides
// where it leads. Nothing is copied here, and no path is looked at.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/fields.hpp"
#include "src/base/json_fwd.hpp"

namespace dlrun::plan {

struct StageIn {
  std::string name;               // below DLRUN_STAGE
  std::string from;               // absolute
  std::string to = "node-local";  // or shm, or an absolute path: the folder in which the copy is made
  bool unpack = false;            // an archive: what is in it is what ranks find
  bool reuse = false;             // the copy stays for the next run that wants the same
  Seconds time_limit{3600};       // 0: none; those of all items add up
  friend bool operator==(const StageIn&, const StageIn&) = default;
};

/// The variable with the folder of all items.
inline constexpr std::string_view kStageVariable = "DLRUN_STAGE";
/// What $DLRUN_STAGE in a job file is read as, until the plan knows the folder.
inline constexpr std::string_view kStagePlaceholder = "/DLRUN_STAGE";

/// The section `stage` of a job file, a list of maps; empty where it has none.
Result<std::vector<StageIn>> read_stage(yaml::Fields& job, const std::filesystem::path& base);

/// The folder of all items of a run, absolute.
std::string stage_folder(std::string_view job_id);

/// The variable with the path of one item: DLRUN_STAGE_FLOWERS_TAR for flowers.tar.
std::string stage_variable(std::string_view name);

/// The text with the folder wherever the placeholder is a path's beginning.
std::string with_stage_folder(std::string_view text, const std::string& folder);

/// How long the staging of all items may take; 0: no limit.
Seconds stage_limit(const std::vector<StageIn>& items);

Json to_json(const StageIn& item);
/// An Error, which begins with `where`, for what is no item.
Result<StageIn> stage_in_from_json(const Json& json, std::string_view where);

}  // namespace dlrun::plan
