// Adapter: what one framework needs, as data (frameworks/NAME.yaml): which variables its ranks get, what
// stands before the user's command, which files and checks it wants. It has no logic; everything computed is
// a fact (facts.hpp). Loading is strict: a mistake is an error with its place before any job is planned.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/plan/adapter_needs.hpp"
#include "src/plan/adapter_words.hpp"
#include "src/plan/fact_text.hpp"
#include "src/plan/gpu_view.hpp"
#include "src/plan/parallel_spec.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/roles.hpp"

namespace dlrun::plan {

struct Adapter {
  std::string name;
  std::string summary;
  std::string source;  // the file
  ProcessModel process = ProcessModel::per_rank;
  std::string mpi = "none";  // auto: look at the program; else a protocol
  std::vector<AdapterVariable> variables;
  std::vector<AdapterVariable> defaults;                // only where the environment has no such variable
  std::vector<AdapterWord> prefix;                      // argv before the user's command
  std::vector<AdapterWord> suffix;                      // and after it
  std::vector<AdapterWord> command;                     // instead of a user's command
  std::vector<std::pair<std::string, FactText>> files;  // name under the run directory
  std::vector<RoleKind> roles;                          // in the order of the ranks; empty: no roles
  std::vector<std::vector<AdapterWord>> checks;         // each must succeed before a rank starts
  AdapterNeeds needs;                                   // what must be there on every node
  EnvironmentChanges interfaces;                        // as Plan::interface_variables
  GpuView gpu_view = GpuView::own;
  std::optional<AdapterParallel> parallel = {};       // unset: any process groups
  int reserve_cpus = 0;                               // of a rank's cores, for threads that communicate
  std::vector<std::vector<AdapterWord>> plan_checks;  // the checks of the job alone: dlrun plan runs them
  std::vector<std::string> warnings;                  // of values in it that have new names
};

Result<Adapter> parse_adapter(std::string_view text, const std::string& file);

/// Reads a tree that is merged over the adapter that it extends.
Result<Adapter> parse_adapter(const yaml::Node& root, const std::string& file);
/// Merges `child` over `parent`: env, defaults, files, roles and needs key by key, all else as a whole.
yaml::Node extend_adapter(const yaml::Node& parent, const yaml::Node& child);

/// The settings of an adapter, with the names of facts unexpanded.
Json to_json(const Adapter& adapter);

// Where adapters are looked for, first found wins.
struct AdapterPath {
  std::vector<std::filesystem::path> folders;
};
AdapterPath adapter_path(const std::optional<std::filesystem::path>& framework_dir,
                         const std::filesystem::path& user_config,
                         const std::filesystem::path& installed_data);

Result<Adapter> find_adapter(const AdapterPath& path, const std::string& name,
                             const std::string& asked_at = {});
// The adapter in this file, wherever it is; what it extends is looked for beside it first.
Result<Adapter> load_adapter(AdapterPath path, const std::filesystem::path& file);
// Every adapter that find_adapter would give, by name.
Result<std::vector<Adapter>> all_adapters(const AdapterPath& path);

}  // namespace dlrun::plan
