// See device_sum_choice.hpp.
#include "runtime/comm/allreduce/choose_device_allreduce.hpp"

#include "runtime/comm/allreduce/algorithm.hpp"
#include "runtime/comm/allreduce/compressed_allreduce.hpp"
#include "runtime/comm/allreduce/hierarchical.hpp"
#include "runtime/comm/nccl/allreduce.hpp"

namespace dlrun::runtime {
namespace {

Result<NamedAllreduce> by_nccl(Communicator& world, const std::shared_ptr<DeviceCalls>& calls, Wire wire,
                               const std::filesystem::path& library) {
  if (wire == Wire::f32) return make_nccl_sum(world, library);
  return make_packed_sum(world, calls, wire, library);
}

Result<NamedAllreduce> by_nodes(Communicator& world, const std::shared_ptr<DeviceCalls>& calls, Wire wire,
                                const Environment& environment, const std::filesystem::path& library) {
  const NodePlace place = TRY(place_in_nodes(TRY(ask_nodes(world, environment)), world.rank()));
  if (place.across.size() > 1) return make_hierarchical_sum(world, calls, wire, place, library);
  NamedAllreduce alone = TRY(by_nccl(world, calls, wire, library));
  alone.description += " alone, as all ranks are on one node";
  return alone;
}

}  // namespace

Result<NamedAllreduce> make_device_sum(Communicator& world, const std::shared_ptr<DeviceCalls>& calls,
                                       Wire wire, const Environment& environment,
                                       const std::filesystem::path& library) {
  if (TRY(choose_allreduce(environment)) != Allreduce::hierarchical)
    return by_nccl(world, calls, wire, library);
  auto made = by_nodes(world, calls, wire, environment, library);
  if (made || made.error().kind != ErrorKind::unavailable) return made;
  Error error = std::move(made).error();
  error.kind = ErrorKind::usage;
  error.what = "DLRUN_ALLREDUCE is 'hierarchical', but " + error.what;
  return fail(std::move(error));
}

Result<void> check_sum_without_gpu(const Environment& environment) {
  if (environment.get("DLRUN_ALLREDUCE") != "hierarchical") return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .what = "DLRUN_ALLREDUCE is 'hierarchical', a sum on GPUs, but this rank is on the CPU",
                    .hint = "leave DLRUN_ALLREDUCE out: messages between CPUs have their own ways"});
}

}  // namespace dlrun::runtime
