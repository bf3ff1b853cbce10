// The MPI service of a rank whose agent was itself started as a rank by the site's launcher (srun --mpi=pmix,
// mpiexec): there is nothing to serve, the agent passes on what it was started with. It refuses to start a
// rank that would come up as a world of its own: without a PMI, with another world's size, or with a PMI that
// its program does not speak.
#pragma once

#include "src/agent/pmi/mpi_service.hpp"
#include "src/process/mpi_flavour.hpp"

namespace dlrun::agent {

// `own`: the environment that the launcher gave to this agent.
std::unique_ptr<MpiService> make_engine_service(const plan::NodeSlice& slice, const Environment& own,
                                                MpiService::Callbacks callbacks);

// What of `own` comes from the launcher and belongs to the rank. Pure.
std::vector<std::pair<std::string, std::string>> engine_variables(const Environment& own);

// Whether a program of `flavour` finds its world of `size` through `own`; an Error says what it lacks. Pure.
Result<void> check_engine(const Environment& own, MpiFlavour flavour, Rank rank, int size);

}  // namespace dlrun::agent
