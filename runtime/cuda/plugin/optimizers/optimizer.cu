// See optimizer.hpp.
#include <cstring>

#include "runtime/cuda/plugin/optimizers/optimizer.hpp"
#include "runtime/optim/list.hpp"

namespace dlrun::cuda {

#define DLRUN_DECLARE(NAME) void update_by_##NAME(Device& device, std::int64_t count, const float* factors);
DLRUN_OPTIMIZERS(DLRUN_DECLARE)
#undef DLRUN_DECLARE

UpdateFunction find_update(const char* optimizer) {
#define DLRUN_ROW(NAME) \
  if (std::strcmp(optimizer, #NAME) == 0) return update_by_##NAME;
  DLRUN_OPTIMIZERS(DLRUN_ROW)
#undef DLRUN_ROW
  throw Failure(std::string("the optimizer '") + optimizer + "' is not supported on GPUs");
}

void refresh(Device& device, std::size_t count) {
  if (device.copies == nullptr) return;
  const float* values = device.values;
  Bf16* copies = device.copies;
  for_each(device.stream, static_cast<std::int64_t>(count),
           [=] __device__(std::int64_t i) { put(copies[i], values[i]); });
}

}  // namespace dlrun::cuda
