// The plug-in's border: the C table. Every Failure ends here and becomes a code and a text.
#include <cstring>

#include "runtime/cuda/plugin/allreduce_calls.hpp"
#include "runtime/cuda/plugin/border.hpp"
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {
namespace {

Engine& of(void* engine) {
  return *static_cast<Engine*>(engine);
}

int device_count(int* count) {
  return guarded([&] { check(cudaGetDeviceCount(count), "asking for GPUs"); });
}
int device_name(int device, char* text, std::size_t capacity) {
  return guarded([&] {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "asking the GPU for its name");
    std::strncpy(text, properties.name, capacity - 1);
    text[capacity - 1] = 0;
  });
}
int library_versions(std::size_t* cudnn, std::size_t* cublaslt) {
  *cudnn = cudnnGetVersion();
  *cublaslt = cublasLtGetVersion();
  return 0;
}
int use(int device) {
  return guarded([&] { check(cudaSetDevice(device), "choosing the GPU"); });
}
int create(const DlrunCudaPlan* plan, int device, void** engine) {
  return guarded([&] { *engine = new Engine(*plan, device); });
}
void destroy(void* engine) {
  delete static_cast<Engine*>(engine);
}
int connect(void* engine, const DlrunCudaPeers* peers) {
  return guarded([&] { of(engine).connect(*peers); });
}
// The rows, or null with a text where the device has failed.
template <class T>
T* rows(void* engine, T* (Engine::*get)()) {
  T* out = nullptr;
  guarded([&] { out = (of(engine).*get)(); });
  return out;
}
float* input(void* engine) {
  return rows(engine, &Engine::input);
}
std::uint8_t* pixels(void* engine) {
  return rows(engine, &Engine::pixels);
}
std::int32_t* labels(void* engine) {
  return rows(engine, &Engine::labels);
}
std::int32_t* mixed_labels(void* engine) {
  return rows(engine, &Engine::mixed_labels);
}
float* targets(void* engine) {
  return rows(engine, &Engine::targets);
}
float* gradients(void* engine) {
  return of(engine).gradients();
}
std::size_t memory_bytes(void* engine) {
  return of(engine).memory_bytes();
}
int stage(void* engine) {
  return guarded([&] { of(engine).stage(); });
}
int begin(void* engine, DlrunCudaWork work, DlrunCudaStatistics statistics, const std::uint64_t* keys) {
  return guarded([&] { of(engine).begin(work, statistics, keys); });
}
int begin_half(void* engine, DlrunCudaHalf half, std::size_t place, const std::uint64_t* keys) {
  return guarded([&] { of(engine).begin_half(half, place, keys); });
}
int end(void* engine, DlrunCudaResult* result) {
  return guarded([&] { *result = of(engine).end(); });
}
int apply(void* engine, const float* factors, float kept, float scale, float clip) {
  return guarded([&] { of(engine).apply(factors, kept, scale, clip); });
}
int swap_averages(void* engine) {
  return guarded([&] { of(engine).swap_averages(); });
}
int average_state(void* engine, const DlrunCudaPeers* peers, std::size_t ranks) {
  return guarded([&] { of(engine).average_state(*peers, ranks); });
}
int generate(void* engine, std::size_t first, std::size_t last, const std::uint64_t* keys, float* images) {
  return guarded([&] { of(engine).generate(first, last, keys, images); });
}
int next_scores(void* engine, std::int64_t position, float* scores) {
  return guarded([&] { of(engine).next_scores(position, scores); });
}
int profile(void* engine, float* milliseconds) {
  return guarded([&] { of(engine).profile(milliseconds); });
}
int time_sum(void* engine, std::size_t count, float* issued, float* captured) {
  return guarded([&] { of(engine).time_sum(count, *issued, *captured); });
}
int read(void* engine, DlrunCudaArena arena, std::size_t offset, std::size_t count, float* out) {
  return guarded([&] { of(engine).move(arena, offset, count, out, cudaMemcpyDeviceToHost); });
}
int write(void* engine, DlrunCudaArena arena, std::size_t offset, std::size_t count, const float* values) {
  return guarded(
      [&] { of(engine).move(arena, offset, count, const_cast<float*>(values), cudaMemcpyHostToDevice); });
}

}  // namespace
}  // namespace dlrun::cuda

extern "C" __attribute__((visibility("default"))) const DlrunCudaTable* dlrun_cuda_table() {
  namespace c = dlrun::cuda;
  static const DlrunCudaTable kTable{DLRUN_CUDA_TABLE_VERSION,
                                     c::device_count,
                                     c::device_name,
                                     c::library_versions,
                                     c::use,
                                     c::create,
                                     c::destroy,
                                     c::connect,
                                     c::input,
                                     c::pixels,
                                     c::labels,
                                     c::mixed_labels,
                                     c::targets,
                                     c::gradients,
                                     c::memory_bytes,
                                     c::stage,
                                     c::begin,
                                     c::begin_half,
                                     c::end,
                                     c::apply,
                                     c::swap_averages,
                                     c::average_state,
                                     c::generate,
                                     c::next_scores,
                                     c::profile,
                                     c::time_sum,
                                     c::read,
                                     c::write,
                                     c::kSumCalls,
                                     c::error_text};
  return &kTable;
}
