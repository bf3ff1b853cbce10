// See sums_table.h: the border of the calls that sums over ranks are made of.
#include "runtime/cuda/plugin/allreduce_calls.hpp"
#include "runtime/cuda/plugin/border.hpp"
#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {
namespace {

cudaStream_t stream_of(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

int take(DlrunCudaPlace place, std::size_t bytes, void** memory) {
  return guarded([&] {
    check(place == DLRUN_CUDA_PINNED ? cudaMallocHost(memory, bytes) : cudaMalloc(memory, bytes),
          "memory for sums over the ranks");
  });
}
int release(DlrunCudaPlace place, void* memory) {
  return guarded([&] {
    check(place == DLRUN_CUDA_PINNED ? cudaFreeHost(memory) : cudaFree(memory),
          "freeing memory of sums over the ranks");
  });
}
int copy(void* to, const void* from, std::size_t bytes, void* stream) {
  return guarded([&] {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)), "moving a part of a sum");
  });
}
int call_host(void (*function)(void*), void* context, void* stream) {
  return guarded(
      [&] { check(cudaLaunchHostFunc(stream_of(stream), function, context), "calling the host"); });
}
int pack_on(DlrunCudaCommDtype dtype, void* to, const float* from, std::size_t count, void* stream) {
  return guarded([&] { pack(dtype, to, from, count, stream_of(stream)); });
}
int unpack_on(DlrunCudaCommDtype dtype, float* to, const void* from, std::size_t count, void* stream) {
  return guarded([&] { unpack(dtype, to, from, count, stream_of(stream)); });
}
int add_on(float* to, const float* left, const float* right, std::size_t count, void* stream) {
  return guarded([&] { add(to, left, right, count, stream_of(stream)); });
}
int pack_sum_on(DlrunCudaCommDtype dtype, void* to, const DlrunCudaTerms* terms, std::size_t count,
                void* stream) {
  return guarded([&] { pack_sum(dtype, to, *terms, count, stream_of(stream)); });
}

}  // namespace

const DlrunCudaSumCalls kSumCalls{take, release, copy, call_host, pack_on, unpack_on, add_on, pack_sum_on};

}  // namespace dlrun::cuda
