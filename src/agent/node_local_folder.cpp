#include "src/agent/node_local_folder.hpp"

#include "src/base/temporary_folder.hpp"

namespace dlrun::agent {

std::string node_local_folder(const Environment& environment) {
  for (const char* name : {"DLRUN_NODE_LOCAL", "SLURM_TMPDIR"})
    if (std::string folder = environment.get(name); folder.starts_with('/')) return folder;
  return temporary_folder(environment);
}

}  // namespace dlrun::agent
