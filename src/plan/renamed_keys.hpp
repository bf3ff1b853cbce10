// Keys and values of the job file that have new names. The old ones work for one release: they are replaced
// before anything is read, so that the rest of dlrun, `plan --explain` and the frozen job know the new names
// alone, and each is said once. The tables are here and, for launch.via, the schedulers' former names.
#pragma once

#include <string>
#include <vector>

#include "src/base/yaml.hpp"

namespace dlrun::plan {

/// The new path of a key; the path itself where it was not renamed. `warnings` gets one line for each old
/// one.
std::string renamed_key(const std::string& path, std::vector<std::string>& warnings);

/// Gives the keys of one layer their new names. An Error if a layer has both names of a key.
Result<void> rename_keys(yaml::Node& layer, std::vector<std::string>& warnings);

/// Gives the values of the merged tree their new names.
void rename_values(yaml::Node& tree, std::vector<std::string>& warnings);

/// The same for the values of an adapter: those of users may be older than this dlrun.
void rename_adapter_values(yaml::Node& tree, std::vector<std::string>& warnings);

}  // namespace dlrun::plan
