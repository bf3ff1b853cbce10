#include "schedulers/slurm/cluster_name.hpp"

#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun {

// Slurm reads its keys in any case.
std::string cluster_name_of(std::string_view configuration) {
  for (const std::string& line : split(configuration, '\n')) {
    const std::string text(trim(std::string_view(line).substr(0, line.find('#'))));
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || lower(trim(std::string_view(text).substr(0, equals))) != "clustername")
      continue;
    const std::string_view value = trim(std::string_view(text).substr(equals + 1));
    return std::string(value.substr(0, value.find_first_of(" \t")));
  }
  return {};
}

std::string slurm_cluster_name(const Environment& environment) {
  if (std::string name = environment.get("SLURM_CLUSTER_NAME"); !name.empty()) return name;
  for (const std::string& file : {environment.get("SLURM_CONF"), std::string("/etc/slurm/slurm.conf"),
                                  std::string("/run/slurm/conf/slurm.conf")})
    if (const auto text = file.empty() ? Result<std::string>("") : read_file(file, 1 << 20); text)
      if (std::string name = cluster_name_of(*text); !name.empty()) return name;
  return {};
}

}  // namespace dlrun
