#include "src/cli/run_words.hpp"

#include <utility>

namespace dlrun::cli {

Argv run_words(const JobOptions& options) {
  Argv out;
  // With '=': a value may begin with a dash.
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) out.push_back(std::string(flag) + "=" + value);
  };
  for (const std::string& set : options.sets) add("--set", set);
  for (const auto& [flag, value] :
       {std::pair("--framework", &options.framework), std::pair("--name", &options.name),
        std::pair("--nodes", &options.nodes), std::pair("--gpus-per-node", &options.gpus_per_node),
        std::pair("--tasks-per-node", &options.tasks_per_node),
        std::pair("--cpus-per-task", &options.cpus_per_task), std::pair("--mpi", &options.mpi),
        std::pair("--via", &options.via), std::pair("--retries", &options.retries),
        std::pair("--run-dir", &options.run_dir), std::pair("--framework-dir", &options.framework_dir)})
    add(flag, *value);
  if (options.no_bind) out.emplace_back("--no-bind");
  if (!options.job_file.empty()) out.push_back(options.job_file);
  if (!options.words.empty()) out.emplace_back("--");
  out.insert(out.end(), options.words.begin(), options.words.end());
  return out;
}

}  // namespace dlrun::cli
