// What Hopper's matrix units and copy engine are asked for, one PTX instruction a function: barriers in
// shared memory, copies of tiles (TMA) and products of a warpgroup (wgmma) of bf16 with sums in f32. A tile
// is rows of 64 numbers (128 bytes) in the swizzle of 128 bytes, and begins at a multiple of 1024 bytes. It
// knows no operator. Only for code that is compiled for sm_90a.
#pragma once

#include <cstdint>

#include <cuda.h>

namespace dlrun::cuda::hopper {

inline __device__ std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

// A barrier in shared memory turns over when `count` have arrived and all bytes it was told of are there.
inline __device__ void start_barrier(std::uint64_t* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count));
}
inline __device__ void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
inline __device__ void arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
inline __device__ void arrive_expecting(std::uint64_t* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
// Until the phase with that parity is over. Of a new barrier, the one before its first, with parity 1, is.
inline __device__ void await(std::uint64_t* barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\n"
      "bra again;\n"
      "over:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
// Of so many threads of the block, by the number of one of its 16 barriers.
inline __device__ void synchronize(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// How long the second-level cache is to keep what is copied.
enum class Keep : std::uint64_t { shortly = 0x12F0000000000000, long_ = 0x14F0000000000000 };
// A box of the map, whose first number has these coordinates; `barrier` counts its bytes.
inline __device__ void copy_tile(void* to, const CUtensorMap& map, int column, int row,
                                 std::uint64_t* barrier, Keep keep) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(barrier)), "r"(column), "r"(row), "l"(static_cast<std::uint64_t>(keep))
      : "memory");
}
inline __device__ void copy_bytes(void* to, const void* from, unsigned bytes, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
// Begun by one thread, which alone can wait for it.
inline __device__ void store_tile(const CUtensorMap& map, const void* from, int column, int row, Keep keep) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%2, %3}], [%1], %4;" ::"l"(
          &map),
      "r"(shared_address(from)), "r"(column), "r"(row), "l"(static_cast<std::uint64_t>(keep))
      : "memory");
}
inline __device__ void end_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
inline __device__ void await_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
inline __device__ void await_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
// What ordinary stores left in shared memory is seen by the matrix units and the copy engine.
inline __device__ void show_stores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// By all four warps of a warpgroup.
template <int kRegisters>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// How the matrix units find a tile; 16 numbers along its rows further, and 16 rows further.
constexpr std::uint64_t kAlongRow = 2, kAlongRows = 128;
inline __device__ std::uint64_t descriptor(const void* tile) {
  constexpr std::uint64_t kUnused = 1, kEightRows = 1024 >> 4, kSwizzle128 = 1;
  return (shared_address(tile) >> 4) | (kUnused << 16) | (kEightRows << 32) | (kSwizzle128 << 62);
}

// Products are begun together, and awaited until at most so many groups of them are not done.
inline __device__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
inline __device__ void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// The compiler moves no use of these registers across it: products change them while other code runs.
template <int kCount>
__device__ void pin(float (&numbers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(numbers[i])::"memory");
}
template <int kCount>
__device__ void pin(std::uint32_t (&numbers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(numbers[i])::"memory");
}

#define DLRUN_SUMS_8(A, I)                                                                    \
  "+f"(A[I]), "+f"(A[I + 1]), "+f"(A[I + 2]), "+f"(A[I + 3]), "+f"(A[I + 4]), "+f"(A[I + 5]), \
      "+f"(A[I + 6]), "+f"(A[I + 7])
#define DLRUN_SUMS_32(A, I) \
  DLRUN_SUMS_8(A, I), DLRUN_SUMS_8(A, I + 8), DLRUN_SUMS_8(A, I + 16), DLRUN_SUMS_8(A, I + 24)
#define DLRUN_NAMES_32                                                                         \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31"
#define DLRUN_NAMES_64                                                                                    \
  DLRUN_NAMES_32                                                                                          \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56," \
  "%57,%58,%59,%60,%61,%62,%63"

// What becomes of the numbers that a product adds to.
enum class Sum { fresh, goes_on };
// [64 x 128] += [64 x 16] x [128 x 16]^T.
inline __device__ void multiply_rows(float (&sum)[64], std::uint64_t left, std::uint64_t right, Sum from) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" DLRUN_NAMES_64
      "}, %64, %65, adds, 1, 1, 0, 0;\n}\n"
      : DLRUN_SUMS_32(sum, 0), DLRUN_SUMS_32(sum, 32)
      : "l"(left), "l"(right), "r"(from == Sum::goes_on ? 1 : 0));
}
// [64 x 64] += [64 x 16] x [16 x 64]: the left one in four registers of each thread.
inline __device__ void multiply_registers(float (&sum)[32], const std::uint32_t* left, std::uint64_t right,
                                          Sum from) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" DLRUN_NAMES_32
      "}, {%32,%33,%34,%35}, %36, adds, 1, 1, 1;\n}\n"
      : DLRUN_SUMS_32(sum, 0)
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right),
        "r"(from == Sum::goes_on ? 1 : 0));
}
// [64 x 64] += [16 x 64]^T x [16 x 64].
inline __device__ void multiply_turned(float (&sum)[32], std::uint64_t left, std::uint64_t right, Sum from) {
  asm volatile(
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" DLRUN_NAMES_32
      "}, %32, %33, adds, 1, 1, 1, 1;\n}\n"
      : DLRUN_SUMS_32(sum, 0)
      : "l"(left), "l"(right), "r"(from == Sum::goes_on ? 1 : 0));
}
#undef DLRUN_SUMS_8
#undef DLRUN_SUMS_32
#undef DLRUN_NAMES_32
#undef DLRUN_NAMES_64

// Four squares of 8 x 8 numbers of a warp; each thread gives the address of one of their 32 rows.
inline __device__ void store_squares(void* row, const std::uint32_t* four) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(row)),
               "r"(four[0]), "r"(four[1]), "r"(four[2]), "r"(four[3])
               : "memory");
}

// Adds to memory in the order of the thread's other accesses of it, and does not wait.
inline __device__ void add_four(float4* to, const float* four) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(four[0]), "f"(four[1]),
               "f"(four[2]), "f"(four[3])
               : "memory");
}
// 2^x.
inline __device__ float power(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace dlrun::cuda::hopper
