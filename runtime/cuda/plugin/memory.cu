// Memory of the device and pinned memory of the host. Too little is told with what there is and what this
// model has already.
#include <cstring>

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

void* Memory::device(std::size_t bytes, const char* what) {
  void* block = nullptr;
  const std::size_t wanted = bytes == 0 ? 16 : bytes;
  const cudaError_t error = cudaMalloc(&block, wanted);
  if (error == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    cudaGetLastError();
    throw Failure("the GPU has no room for " + std::to_string(wanted >> 20) + " MiB of " + what + ": " +
                  std::to_string(free >> 20) + " of " + std::to_string(total >> 20) +
                  " MiB are free, this model has " + std::to_string(bytes_ >> 20) + " MiB already");
  }
  check(error, what);
  blocks_.push_back(block);
  bytes_ += wanted;
  check(cudaMemset(block, 0, wanted), what);
  return block;
}

void* Memory::pinned(std::size_t bytes) {
  void* block = nullptr;
  check(cudaMallocHost(&block, bytes == 0 ? 16 : bytes), "pinned memory of the host");
  pinned_.push_back(block);
  std::memset(block, 0, bytes);
  return block;
}

}  // namespace dlrun::cuda
