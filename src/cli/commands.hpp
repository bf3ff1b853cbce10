// The commands: each a function from its options to an exit code, in a file of its own.
#pragma once

#include "src/base/environment.hpp"
#include "src/base/exit_code.hpp"
#include "src/cli/console.hpp"
#include "src/cli/options.hpp"
#include "src/run/prepare.hpp"

namespace dlrun::cli {

struct Context {
  Console& console;
  const CommonOptions& common;
  const Environment& environment;
};

Result<int> run(const RunOptions& options, const Context& context);
Result<int> show_plan(const PlanOptions& options, const Context& context);
Result<int> submit(const SubmitOptions& options, const Context& context);
Result<int> manage_chain(const ChainOptions& options, const Context& context);
Result<int> show_allocation(const AllocationOptions& options, const Context& context);
Result<int> show_hosts(const HostsOptions& options, const Context& context);
Result<int> show_slurm_end(const SlurmEndOptions& options, const Context& context);
Result<int> show_frameworks(const FrameworksOptions& options, const Context& context);

NamedHosts named_hosts(const HostFileOptions& options);
// The request that the flags of `dlrun run` and `dlrun plan` make.
Result<job::Request> request_of(const JobOptions& options, const Environment& environment);

}  // namespace dlrun::cli
