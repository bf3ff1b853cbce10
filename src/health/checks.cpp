#include "src/health/check.hpp"

namespace dlrun::health {

Check software_check();
Check mpi_check();
Check limits_check();
Check processors_check();
Check space_check();
Check files_check();
Check clock_check();
Check names_check();
Check gpus_check();
Check network_check();
Check allreduce_check();

const std::vector<Check>& checks() {
  static const std::vector<Check> all{software_check(), mpi_check(),     limits_check(),   processors_check(),
                                      space_check(),    files_check(),   clock_check(),    names_check(),
                                      gpus_check(),     network_check(), allreduce_check()};
  return all;
}

}  // namespace dlrun::health
