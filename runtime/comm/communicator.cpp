#include "runtime/comm/communicator.hpp"

#include "runtime/comm/allreduce/algorithm.hpp"
#include "runtime/comm/mpi/communicator.hpp"
#include "runtime/comm/one_rank.hpp"
#include "runtime/comm/own_communicator.hpp"

namespace dlrun::runtime {

namespace {

Result<std::unique_ptr<Communicator>> one_rank(const Environment& environment) {
  const std::string promised = environment.get("DLRUN_SIZE", "1");
  if (promised == "1") return make_one_rank_communicator();
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("DLRUN_SIZE promises {} ranks, but nothing here connects them: neither "
                                "PMIx (PMIX_NAMESPACE) nor PMI-1 (PMI_FD) is offered",
                                promised),
            .where = fmt::format("rank {}", environment.get("DLRUN_RANK", "unknown")),
            .hint = "start the job with --mpi pmix or --mpi pmi1"});
}

Result<std::unique_ptr<Communicator>> over_mpi(MpiFlavour flavour, const Environment& environment) {
  auto mpi = MpiLibrary::open(flavour);
  if (mpi) return make_mpi_communicator(std::move(*mpi), environment);
  Error error = std::move(mpi).error();
  if (error.hint.empty())
    error.hint = "load a module that brings this MPI, or start the job with --mpi pmi1, which needs no MPI";
  return fail(std::move(error));
}

Result<std::unique_ptr<Communicator>> over_mpich_or_own(const Environment& environment) {
  auto mpi = MpiLibrary::open(MpiFlavour::mpich);
  if (mpi) return make_mpi_communicator(std::move(*mpi), environment);
  return make_own_communicator(environment, mpi.error().text());
}

}  // namespace

Result<Backend> choose_backend(const Environment& environment) {
  const std::string asked = environment.get("DLRUN_COMM");
  if (asked == "none") return Backend::one_rank;
  if (asked == "openmpi") return Backend::openmpi;
  if (asked == "mpich") return Backend::mpich;
  if (asked == "pmi") return Backend::own;
  if (!asked.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("DLRUN_COMM is '{}'", asked),
                      .hint = "valid values: none, openmpi, mpich, pmi"});
  if (environment.get("DLRUN_SIZE") == "1") return Backend::one_rank;
  if (environment.find("PMIX_NAMESPACE")) return Backend::openmpi;
  if (environment.find("PMI_FD")) return Backend::mpich_or_own;
  return Backend::one_rank;
}

Result<Allreduce> choose_allreduce(const Environment& environment) {
  const std::string asked = environment.get("DLRUN_ALLREDUCE", "auto");
  if (asked == "auto") return Allreduce::automatic;
  if (asked == "mpi") return Allreduce::mpi;
  if (asked == "ring") return Allreduce::ring;
  if (asked == "halving") return Allreduce::halving;
  if (asked == "hierarchical") return Allreduce::hierarchical;
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("DLRUN_ALLREDUCE is '{}'", asked),
                    .hint = "valid values: auto, mpi, ring, halving, hierarchical"});
}

Result<Allreduce> choose_host_sum(const Environment& environment) {
  const Allreduce asked = TRY(choose_allreduce(environment));
  return asked == Allreduce::hierarchical ? Allreduce::automatic : asked;
}

bool is_of_host(Allreduce allreduce) {
  return allreduce == Allreduce::mpi || allreduce == Allreduce::ring || allreduce == Allreduce::halving;
}

Result<void> Communicator::rounded_allreduce_start(std::span<float> data, Wire wire) {
  if (wire == Wire::f32 || size() == 1) return allreduce_start(data);
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} cannot send gradients as {}", description(), name_of(wire)),
                    .hint = "set train.allreduce.wire to f32"});
}

Result<void> Communicator::served_sum_start(std::span<const ServedPiece>) {
  if (size() == 1) return {};
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} has no parameter servers", description()),
                    .hint = "leave train.parameter-server out"});
}

Result<void> Communicator::group_sum(std::span<const int> group, std::span<float>, Wire) {
  if (group.size() == 1) return {};
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} cannot sum over some of its ranks", description()),
                    .hint = "leave DLRUN_ALLREDUCE out"});
}

Result<std::unique_ptr<Communicator>> make_communicator(const Environment& environment) {
  const Backend backend = TRY(choose_backend(environment));
  TRY(choose_allreduce(environment));  // before any library is loaded
  switch (backend) {
    case Backend::openmpi:
      return over_mpi(MpiFlavour::openmpi, environment);
    case Backend::mpich:
      return over_mpi(MpiFlavour::mpich, environment);
    case Backend::mpich_or_own:
      return over_mpich_or_own(environment);
    case Backend::own:
      return make_own_communicator(environment, {});
    case Backend::one_rank:
      break;
  }
  return one_rank(environment);
}

}  // namespace dlrun::runtime
