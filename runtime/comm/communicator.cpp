#include "runtime/comm/communicator.hpp"

#include "runtime/comm/backend.hpp"
#include "runtime/comm/elastic/elastic_communicator.hpp"
#include "runtime/comm/mpi/communicator.hpp"
#include "runtime/comm/one_rank.hpp"
#include "runtime/comm/own_communicator.hpp"

namespace dlrun::runtime {

namespace {

Result<std::unique_ptr<Communicator>> one_rank(const Environment& environment) {
  const std::string promised = environment.get("DLRUN_SIZE", "1");
  if (promised == "1") return make_one_rank_communicator();
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("DLRUN_SIZE is {}, but nothing connects the ranks: neither PMIx "
                                        "(PMIX_NAMESPACE) nor PMI-1 (PMI_FD) is available",
                                        promised),
                    .where = fmt::format("rank {}", environment.get("DLRUN_RANK", "unknown")),
                    .hint = "start the job with --mpi pmix or --mpi pmi1"});
}

Result<std::unique_ptr<Communicator>> over_mpi(MpiFlavour flavour, const Environment& environment,
                                               const AllreduceChoice& choice) {
  auto mpi = MpiLibrary::open(flavour);
  if (mpi) return make_mpi_communicator(std::move(*mpi), environment, choice);
  Error error = std::move(mpi).error();
  if (error.hint.empty())
    error.hint = "load a module with this MPI, or start the job with --mpi pmi1, which needs no MPI";
  return fail(std::move(error));
}

Result<std::unique_ptr<Communicator>> over_mpich_or_own(const Environment& environment,
                                                        const AllreduceChoice& choice) {
  auto mpi = MpiLibrary::open(MpiFlavour::mpich);
  if (mpi) return make_mpi_communicator(std::move(*mpi), environment, choice);
  return make_own_communicator(environment, choice, mpi.error().text());
}

Result<void> no_parts(const Communicator& comm) {
  return fail(ErrorKind::unavailable, "{} cannot sum parts of an array", comm.description());
}

}  // namespace

Result<void> Communicator::reduce_scatter_start(std::span<float>, std::span<const std::size_t>, CommDtype) {
  return no_parts(*this);
}

Result<void> Communicator::allgather_start(std::span<float>, std::span<const std::size_t>) {
  return no_parts(*this);
}

Result<Backend> choose_backend(const Environment& environment) {
  const std::string asked = environment.get("DLRUN_COMM");
  if (asked == "none") return Backend::one_rank;
  if (asked == "openmpi") return Backend::openmpi;
  if (asked == "mpich") return Backend::mpich;
  if (asked == "pmi") return Backend::own;
  if (asked == "elastic") return Backend::elastic;
  if (!asked.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("DLRUN_COMM is '{}'", asked),
                      .hint = "valid values: none, openmpi, mpich, pmi"});
  if (environment.get("DLRUN_SIZE") == "1") return Backend::one_rank;
  if (environment.find("PMIX_NAMESPACE")) return Backend::openmpi;
  if (environment.find("PMI_FD")) return Backend::mpich_or_own;
  return Backend::one_rank;
}

Result<void> Communicator::exchange_start(Exchange /*exchange*/) {  // NOLINT: overriders keep it
  return fail(ErrorKind::unavailable, "ranks that are connected by {} exchange no messages of their own",
              description());
}

Result<std::unique_ptr<Communicator>> make_communicator(const Environment& environment,
                                                        const AllreduceChoice& of_job) {
  const Backend backend = TRY(choose_backend(environment));
  const AllreduceChoice choice =
      TRY(choose_host_allreduce(environment, of_job));  // before any library is loaded
  switch (backend) {
    case Backend::openmpi:
      return over_mpi(MpiFlavour::openmpi, environment, choice);
    case Backend::mpich:
      return over_mpi(MpiFlavour::mpich, environment, choice);
    case Backend::mpich_or_own:
      return over_mpich_or_own(environment, choice);
    case Backend::own:
      return make_own_communicator(environment, choice, {});
    case Backend::elastic:
      return make_elastic_communicator(environment, choice);
    case Backend::one_rank:
      break;
  }
  return one_rank(environment);
}

}  // namespace dlrun::runtime
