// A libnccl.so.2 for machines without a GPU: its ranks are threads of one process, its device memory is the
// host's, its streams do nothing. fake_nccl_fail(code) is what ncclCommGetAsyncError says from then on.
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

struct Id {
  char bytes[128];
};
struct Rank {
  int rank, ranks;
};

std::mutex mutex;
std::condition_variable moved;
std::vector<float> total;
int arrived = 0, turn = 0;
std::atomic<int> failure{0}, aborted{0}, destroyed{0};

// All ranks add to the total; when the last has, all go on.
template <class Body>
void meet(int ranks, const Body& body) {
  std::unique_lock lock(mutex);
  const int mine = turn;
  body();
  if (++arrived == ranks) {
    arrived = 0;
    ++turn;
    moved.notify_all();
  }
  moved.wait(lock, [&] { return turn != mine; });
}

}  // namespace

EXPORTED int ncclGetVersion(int* version) {
  *version = 22803;
  return 0;
}
EXPORTED int ncclGetUniqueId(Id* id) {
  std::memset(id->bytes, 7, sizeof id->bytes);
  return 0;
}
EXPORTED int ncclCommInitRank(void** comm, int ranks, Id id, int rank) {
  for (const char byte : id.bytes)
    if (byte != 7) return 4;
  *comm = new Rank{rank, ranks};
  return 0;
}
EXPORTED int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation, void* comm,
                           void* /*stream*/) {
  if (type != 7 || operation != 0) return 4;
  const int ranks = static_cast<Rank*>(comm)->ranks;
  const float* mine = static_cast<const float*>(from);
  meet(ranks, [&] { total.assign(count, 0); });
  meet(ranks, [&] {
    for (std::size_t i = 0; i < count; ++i) total[i] += mine[i];
  });
  meet(ranks, [&] { std::memcpy(to, total.data(), count * sizeof(float)); });
  return 0;
}
EXPORTED int ncclCommGetAsyncError(void* /*comm*/, int* state) {
  *state = failure;
  return 0;
}
EXPORTED int ncclCommAbort(void* comm) {
  ++aborted;
  delete static_cast<Rank*>(comm);
  return 0;
}
EXPORTED int ncclCommDestroy(void* comm) {
  ++destroyed;
  delete static_cast<Rank*>(comm);
  return 0;
}
EXPORTED const char* ncclGetErrorString(int code) {
  return code == 6 ? "remote process exited or there was a network error" : "invalid argument";
}
EXPORTED const char* ncclGetLastError(void* /*comm*/) {
  return "";
}
EXPORTED void fake_nccl_fail(int code) {
  failure = code;
}
EXPORTED int fake_nccl_aborted() {
  return aborted;
}
EXPORTED int fake_nccl_destroyed() {
  return destroyed;
}
