// See choose_device_allreduce.hpp.
#include "runtime/comm/allreduce/choose_device_allreduce.hpp"

#include "runtime/comm/allreduce/compressed_allreduce.hpp"
#include "runtime/comm/nccl/allreduce.hpp"

namespace dlrun::runtime {

Result<NamedAllreduce> make_allreduce_by_nccl(const DeviceWorld& world) {
  if (world.dtype == CommDtype::f32) return make_nccl_allreduce(world.world, world.world, world.library);
  return make_compressed_allreduce(world.world, world.calls, world.dtype, world.library);
}

Result<NamedAllreduce> make_device_allreduce(const DeviceWorld& world, const AllreduceChoice& choice) {
  if (choice.is_auto() || choice.algorithm->make == nullptr) return make_allreduce_by_nccl(world);
  auto made = choice.algorithm->make(world);
  if (made || made.error().kind != ErrorKind::unavailable) return made;
  Error error = std::move(made).error();
  error.kind = ErrorKind::usage;
  error.what = choice.text() + ", but " + error.what;
  return fail(std::move(error));
}

}  // namespace dlrun::runtime
