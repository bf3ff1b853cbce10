// See trainer_protocol.hpp.
#include "src/run/trainer_protocol.hpp"

#include <algorithm>

#include "src/process/mpi_flavour.hpp"

namespace dlrun::job {

plan::MpiProtocol trainer_protocol(std::size_t nodes, const Installation& installation,
                                   const Environment& environment) {
  const auto is_there = [&](const char* plugin) {
    return finds_its_libraries(installation.plugins / plugin, environment);
  };
  const bool only_open_mpi = nodes > 1 &&
                             std::none_of(kMpichPlugins.begin(), kMpichPlugins.end(), is_there) &&
                             is_there(kOpenMpiPlugin) && is_there("libdlrun-pmix.so");
  return only_open_mpi ? plan::MpiProtocol::pmix : plan::MpiProtocol::pmi1;
}

}  // namespace dlrun::job
