// The sum of floats over all GPUs of this machine by NCCL alone, as nccl-tests has it: one process, a thread
// for all, sums one behind the other on a stream a GPU. A line of JSON a size. The peer of dlrun-gpu-bench
// sum. Build: nvcc -O2 -arch=sm_90 -o gpu_raw_nccl gpu_raw_nccl.cu -lnccl
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>

#define CHECK(call)                                                         \
  do {                                                                      \
    if (const auto code = (call); static_cast<int>(code) != 0) {            \
      std::fprintf(stderr, "%s: code %d\n", #call, static_cast<int>(code)); \
      std::exit(1);                                                         \
    }                                                                       \
  } while (false)

int main() {
  int gpus = 0;
  CHECK(cudaGetDeviceCount(&gpus));
  std::vector<ncclComm_t> comms(gpus);
  std::vector<cudaStream_t> streams(gpus);
  std::vector<float*> data(gpus);
  CHECK(ncclCommInitAll(comms.data(), gpus, nullptr));
  const std::size_t most = std::size_t{1} << 30;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    CHECK(cudaSetDevice(gpu));
    CHECK(cudaStreamCreateWithFlags(&streams[gpu], cudaStreamNonBlocking));
    CHECK(cudaMalloc(reinterpret_cast<void**>(&data[gpu]), most));
    CHECK(cudaMemset(data[gpu], 0, most));
  }
  for (std::size_t bytes = std::size_t{64} << 10; bytes <= most; bytes *= 4) {
    const auto sums = [&](int times) {
      for (int i = 0; i < times; ++i) {
        CHECK(ncclGroupStart());
        for (int gpu = 0; gpu < gpus; ++gpu)
          CHECK(ncclAllReduce(data[gpu], data[gpu], bytes / 4, ncclFloat, ncclSum, comms[gpu], streams[gpu]));
        CHECK(ncclGroupEnd());
      }
    };
    cudaEvent_t begin, end;
    CHECK(cudaSetDevice(0));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    const auto microseconds = [&](int times) {
      float best = 1e30F;
      for (int round = 0; round < 3; ++round) {
        for (int gpu = 0; gpu < gpus; ++gpu) {
          CHECK(cudaSetDevice(gpu));
          CHECK(cudaDeviceSynchronize());
        }
        CHECK(cudaSetDevice(0));
        CHECK(cudaEventRecord(begin, streams[0]));
        sums(times);
        CHECK(cudaSetDevice(0));
        CHECK(cudaEventRecord(end, streams[0]));
        CHECK(cudaEventSynchronize(end));
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        if (milliseconds < best) best = milliseconds;
      }
      return best * 1000 / times;
    };
    sums(5);
    const float time = microseconds(20);
    const double moved = static_cast<double>(bytes) * 2 * (gpus - 1) / gpus;
    std::printf("{\"bytes\": %zu, \"issued_us\": %.2f, \"issued_gb_per_second\": %.2f}\n", bytes, time,
                moved / time / 1e3);
    std::fflush(stdout);
  }
  return 0;
}
