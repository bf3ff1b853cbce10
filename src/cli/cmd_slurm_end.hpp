// dlrun slurm-end JOB: internal. Asks libslurm when a job ends, in a process that the library may end; prints
// the second since 1970.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct SlurmEndCommand final : Command {
  void add(Arguments& arguments) override { arguments.argument("JOB", job_id, "its number"); }
  Result<int> run(const Context& context) override;

  std::string job_id;
};

}  // namespace dlrun::cli
