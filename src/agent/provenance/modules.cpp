// The environment modules that are loaded, in their order, as Lmod and Environment Modules list them.
#include "src/agent/provenance/facts.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {

Json find_modules(const ProgramSeen& program) {
  Json out = Json::array();
  for (const std::string& name : split(program.environment.get("LOADEDMODULES"), ':'))
    if (!name.empty()) out.push_back(name);
  return out;
}

}  // namespace dlrun::agent
