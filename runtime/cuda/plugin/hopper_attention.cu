// The gradient of causal attention by wgmma and TMA, after FlashAttention-3 (Shah et al. 2024), but in an
// order that gives the same bits in every run: a block has a whole head and goes through its keys and, for
// each of these, through the queries behind them, so that one thread alone adds up each number of dQ. Two
// warpgroups have 64 of 128 keys each; a third one copies tiles ahead. The gradient of the scores goes
// through shared memory, as dQ sums over the keys of both, and is waited for a tile later, so that the one
// can compute exponentials while the other multiplies. Compiled for sm_90a.
#include <cudaTypedefs.h>

#include "runtime/cuda/plugin/attention_gradient.hpp"
#include "runtime/cuda/plugin/hopper_attention.hpp"

namespace dlrun::cuda {
namespace {

using namespace attention;

__global__ void __launch_bounds__(kThreads, 1)
    gradients(const __grid_constant__ CUtensorMap packed, const __grid_constant__ CUtensorMap grads,
              const __grid_constant__ CUtensorMap to, Arrays arrays, Sizes of, float scale) {
  extern __shared__ __align__(1024) char memory[];
  Room& room = *reinterpret_cast<Room*>(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      for (std::uint64_t* const barrier : {&room.keys_full[i], &room.queries_full[i]})
        hopper::start_barrier(barrier, 1);
      for (std::uint64_t* const barrier :
           {&room.keys_empty[i], &room.queries_empty[i], &room.of_scores_empty[i]})
        hopper::start_barrier(barrier, 2);
      hopper::start_barrier(&room.of_scores_full[i], kComputing);
    }
    hopper::show_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kGroup) {
    hopper::give_registers<24>();
    if (threadIdx.x == 0) copy_ahead(room, packed, grads, arrays, of);
  } else {
    hopper::take_registers<240>();
    Computing(room, to, arrays.sums + static_cast<std::int64_t>(blockIdx.x) * of.length * kWidth, of, scale)
        .run();
  }
}

// Of each query of each head: its gradient times its result, by 8 threads, and the logarithm to base 2.
__global__ void prepare(float* logarithms, float* along, const float* figures, const uint4* out,
                        const uint4* grads, Sizes of) {
  const std::int64_t eighth = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  const uint4 left = out[eighth], right = grads[eighth];
  const auto *const x = reinterpret_cast<const Bf16*>(&left), *const y =
                                                                  reinterpret_cast<const Bf16*>(&right);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += number(x[i]) * number(y[i]);
#pragma unroll
  for (int far = 4; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, far);
  if (eighth % 8 != 0) return;
  const std::int64_t row = eighth / 8 / of.heads, head = eighth / 8 % of.heads;
  const std::int64_t at = (row / of.length * of.heads + head) * of.length + row % of.length;
  along[at] = sum;
  logarithms[at] = figures[at] * kLog2E;
}

// Boxes of 64 features of `rows` rows of a matrix.
CUtensorMap map_of(const void* matrix, std::int64_t columns, std::int64_t all_rows, unsigned rows) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found),
        "asking the driver for maps of tensors");
#else
  check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &found),
        "asking the driver for maps of tensors");
#endif
  if (found != cudaDriverEntryPointSuccess || encode == nullptr)
    throw Failure("the driver of the GPU is older than CUDA 12: update it");
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(all_rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(columns) * sizeof(Bf16)};
  const cuuint32_t box[] = {kWidth, rows}, steps[] = {1, 1};
  CUtensorMap map{};
  const CUresult made = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(matrix), extents, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made != CUDA_SUCCESS) throw Failure("the driver makes no map of a tensor of attention");
  return map;
}

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "asking for the GPU");
  check(cudaDeviceGetAttribute(&value, which, device), "asking for what the GPU is");
  return value;
}

// Each has whole heads, one after the other.
std::int64_t blocks_of(const AttentionSizes& of) {
  return std::min<std::int64_t>(attribute(cudaDevAttrMultiProcessorCount), of.batch * of.heads);
}

// Whether most multiprocessors have a head most of the time; else cuDNN's, which divides heads, is faster.
bool fills(const AttentionSizes& of) {
  const std::int64_t heads = of.batch * of.heads, all = attribute(cudaDevAttrMultiProcessorCount);
  const std::int64_t rounds = (heads + all - 1) / all;
  constexpr double kLeast = 0.6;  // the rate of cuDNN's engine by this one's
  return static_cast<double>(heads) >= kLeast * static_cast<double>(rounds * all);
}

std::size_t bytes_of_sums(const AttentionSizes& of) {
  return static_cast<std::size_t>(blocks_of(of) * of.length) * kWidth * sizeof(float);
}

}  // namespace

bool HopperAttentionGradient::fits(const Device& device, const AttentionSizes& of) {
  const bool is_known =
      device.half() && of.width == kWidth && of.heads == of.key_heads && of.length % kTile == 0;
  return is_known && attribute(cudaDevAttrComputeCapabilityMajor) == 9 && fills(of);
}

std::size_t HopperAttentionGradient::workspace_bytes(const AttentionSizes& of) {
  return bytes_of_sums(of) + 2 * static_cast<std::size_t>(of.queries()) * sizeof(float);
}

void HopperAttentionGradient::run(Device& device, const AttentionArrays& arrays, void* workspace) const {
  const Sizes of{static_cast<int>(sizes_.batch), static_cast<int>(sizes_.length),
                 static_cast<int>(sizes_.heads), static_cast<int>(sizes_.features())};
  const std::int64_t rows = sizes_.batch * sizes_.length;
  float* const sums = static_cast<float*>(workspace);
  float* const logarithms = sums + bytes_of_sums(sizes_) / sizeof(float);
  float* const along = logarithms + sizes_.queries();
  constexpr std::int64_t kBlock = 256, kEighth = 8;
  prepare<<<static_cast<unsigned>(rows * sizes_.features() / kEighth / kBlock), kBlock, 0, device.stream>>>(
      logarithms, along, arrays.figures, static_cast<const uint4*>(arrays.out),
      static_cast<const uint4*>(arrays.grad_out), of);
  check(cudaGetLastError(), "the gradient of attention");
  const CUtensorMap packed = map_of(arrays.packed, sizes_.packed(), rows, kTile),
                    grads = map_of(arrays.grad_out, sizes_.features(), rows, kTile),
                    to = map_of(arrays.grad_packed, sizes_.packed(), rows, kHalf);
  check(cudaFuncSetAttribute(gradients, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Room)),
        "shared memory for attention");
  gradients<<<static_cast<unsigned>(blocks_of(sizes_)), kThreads, sizeof(Room), device.stream>>>(
      packed, grads, to, Arrays{logarithms, along, sums}, of, sizes_.scale());
  check(cudaGetLastError(), "the gradient of attention");
}

}  // namespace dlrun::cuda
