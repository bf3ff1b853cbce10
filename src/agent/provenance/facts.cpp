#include "src/agent/provenance/facts.hpp"

namespace dlrun::agent {
namespace {

constexpr NodeFact kNodeFacts[] = {{"cpus", find_cpus}, {"gpus", find_gpus}, {"system", find_system}};

constexpr ProgramFact kProgramFacts[] = {{"modules", find_modules},
                                         {"variables", find_variables},
                                         {"libraries", find_libraries},
                                         {"versions", find_versions}};

}  // namespace

std::span<const NodeFact> node_facts() {
  return kNodeFacts;
}

std::span<const ProgramFact> program_facts() {
  return kProgramFacts;
}

}  // namespace dlrun::agent
