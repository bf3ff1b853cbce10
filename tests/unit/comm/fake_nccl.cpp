// A libnccl.so.2 for machines without a GPU: its ranks are threads of one process, its device memory is the
// host's, its streams do nothing: what is asked for is done before the call returns, or the group ends.
// fake_nccl_fail(code) is what ncclCommGetAsyncError says from then on; fake_nccl_refuse(rank): that rank
// does not connect; fake_nccl_hold(rank): where calls do not wait, that rank never connects. What a
// communicator that does not wait was asked for is under way for some calls, and until then an error to
// ask for more. fake_nccl_log() is what the calling thread has asked for since it last looked, with what
// it noted itself between.
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

struct Id {
  char bytes[128];
};

// The ranks of one communicator.
class Group {
 public:
  // Each rank runs `body`, one after the other; all continue when the last has.
  template <class Body>
  void barrier(int ranks, const Body& body) {
    std::unique_lock lock(mutex_);
    const int mine = turn_;
    body();
    if (++arrived_ == ranks) {
      arrived_ = 0;
      ++turn_;
      moved_.notify_all();
    }
    moved_.wait(lock, [&] { return turn_ != mine; });
  }
  void post(int from, int to, const void* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const char* const start = static_cast<const char*>(data);
    mail_[{from, to}].emplace_back(start, start + bytes);
    moved_.notify_all();
  }
  int take(int from, int to, void* data, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    auto& queue = mail_[{from, to}];
    moved_.wait(lock, [&] { return !queue.empty(); });
    if (queue.front().size() != bytes) return 5;
    std::memcpy(data, queue.front().data(), bytes);
    queue.pop_front();
    return 0;
  }
  std::vector<float> total;
  std::vector<char> gathered;
  std::atomic<int> met{0};

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  int arrived_ = 0, turn_ = 0;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> mail_;
};

struct Rank {
  int rank, ranks;
  std::shared_ptr<Group> group;
  bool waits = true;  // in each call
  int under_way = 0;  // looks until what was asked is done
};

struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

std::mutex mutex;
std::map<std::string, std::weak_ptr<Group>> groups;
std::atomic<int> ids{0}, failure{0}, aborted{0}, destroyed{0}, unconnected{-1}, held{-1}, begun{0};
thread_local std::string log_, shown;
thread_local int grouped = 0;  // how many groups are open
thread_local std::vector<std::function<int()>> asked;

void note(const std::string& text) {
  log_ += (log_.empty() ? "" : ", ") + text;
}
Rank& self_of(void* comm) {
  return *static_cast<Rank*>(comm);
}
int ask(void* comm, const std::string& text, std::function<int()> work) {
  note(text);
  if (self_of(comm).under_way > 0) return 5;
  const auto counted = [comm, work = std::move(work)] {
    const int code = work();
    if (code != 0 || self_of(comm).waits) return code;
    self_of(comm).under_way = 2;
    return 7;
  };
  if (grouped == 0) return counted();
  asked.push_back(counted);
  return 0;
}
const Rank& of(void* comm) {
  return *static_cast<const Rank*>(comm);
}

constexpr int kFloat = 7, kBfloat16 = 9;  // ncclFloat, ncclBfloat16

// bf16 numbers that have no more bits are right, which is all that tests need.
float number_at(const void* from, std::size_t i, int type) {
  if (type == kFloat) return static_cast<const float*>(from)[i];
  const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(from)[i]} << 16;
  float out = 0;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}
void put_all(void* to, const float* from, std::size_t count, int type) {
  if (type == kFloat) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from + i, sizeof bits);
    static_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(bits >> 16);
  }
}

// The sums of all ranks' `count` numbers, to be read in the last of three meetings.
template <class Read>
int total_of(const Rank& self, const void* from, std::size_t count, const Read& read, int type = kFloat) {
  Group& group = *self.group;
  group.barrier(self.ranks, [&] { group.total.assign(count, 0); });
  group.barrier(self.ranks, [&] {
    for (std::size_t i = 0; i < count; ++i) group.total[i] += number_at(from, i, type);
  });
  group.barrier(self.ranks, [&] { read(group.total.data()); });
  return 0;
}

}  // namespace

EXPORTED int ncclGetVersion(int* version) {
  *version = 22803;
  return 0;
}
EXPORTED int ncclGetUniqueId(Id* id) {
  std::memset(id->bytes, 7, sizeof id->bytes);
  const int number = ++ids;
  std::memcpy(id->bytes + 1, &number, sizeof number);
  return 0;
}
EXPORTED int ncclCommInitRank(void** comm, int ranks, Id id, int rank) {
  if (id.bytes[0] != 7) return 4;
  if (rank == unconnected) return 6;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Group>& known = groups[std::string(id.bytes, sizeof id.bytes)];
  std::shared_ptr<Group> group = known.lock();
  if (!group) known = group = std::make_shared<Group>();
  *comm = new Rank{.rank = rank, .ranks = ranks, .group = group};
  return 0;
}
EXPORTED int ncclCommInitRankConfig(void** comm, int ranks, Id id, int rank, const Config* config) {
  if (config->size != sizeof(Config) || config->magic != 0xcafebeef || config->version != 21400 ||
      config->blocking != 0)
    return 4;
  if (const int code = ncclCommInitRank(comm, ranks, id, rank); code != 0) return code;
  self_of(*comm).waits = false;
  if (rank != held) ++self_of(*comm).group->met;
  ++begun;
  return 7;
}
EXPORTED int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation, void* comm,
                           void* /*stream*/) {
  if (type != kFloat || operation != 0) return 4;
  return ask(comm, "all-reduce " + std::to_string(count), [=] {
    return total_of(of(comm), from, count,
                    [&](const float* total) { std::memcpy(to, total, count * sizeof(float)); });
  });
}
EXPORTED int ncclReduce(const void* from, void* to, std::size_t count, int type, int operation, int root,
                        void* comm, void* /*stream*/) {
  if (type != kFloat || operation != 0) return 4;
  return ask(comm, "reduce " + std::to_string(count) + " to " + std::to_string(root), [=] {
    return total_of(of(comm), from, count, [&](const float* total) {
      if (of(comm).rank == root) std::memcpy(to, total, count * sizeof(float));
    });
  });
}
EXPORTED int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int operation,
                               void* comm, void* /*stream*/) {
  if ((type != kFloat && type != kBfloat16) || operation != 0) return 4;
  return ask(comm, "reduce-scatter " + std::to_string(count), [=] {
    const Rank& self = of(comm);
    const std::size_t own = static_cast<std::size_t>(self.rank) * count;
    return total_of(
        self, from, count * static_cast<std::size_t>(self.ranks),
        [&](const float* total) { put_all(to, total + own, count, type); }, type);
  });
}
EXPORTED int ncclAllGather(const void* from, void* to, std::size_t bytes, int type, void* comm,
                           void* /*stream*/) {
  if (type != 1) return 4;
  return ask(comm, "all-gather " + std::to_string(bytes), [=] {
    const Rank& self = of(comm);
    std::vector<char>& all = self.group->gathered;
    const std::size_t whole = bytes * static_cast<std::size_t>(self.ranks);
    self.group->barrier(self.ranks, [&] { all.resize(whole); });
    self.group->barrier(self.ranks, [&] {
      std::memcpy(all.data() + static_cast<std::size_t>(self.rank) * bytes, from, bytes);
    });
    self.group->barrier(self.ranks, [&] { std::memcpy(to, all.data(), whole); });
    return 0;
  });
}
EXPORTED int ncclBroadcast(const void* from, void* to, std::size_t bytes, int type, int root, void* comm,
                           void* /*stream*/) {
  if (type != 1) return 4;
  return ask(comm, "broadcast " + std::to_string(bytes) + " from " + std::to_string(root), [=] {
    const Rank& self = of(comm);
    std::vector<char>& all = self.group->gathered;
    self.group->barrier(self.ranks, [&] { all.resize(bytes); });
    self.group->barrier(self.ranks, [&] {
      if (self.rank == root) std::memcpy(all.data(), from, bytes);
    });
    self.group->barrier(self.ranks, [&] { std::memcpy(to, all.data(), bytes); });
    return 0;
  });
}
EXPORTED int ncclSend(const void* from, std::size_t bytes, int type, int peer, void* comm, void* /*stream*/) {
  if (type != 1) return 4;
  return ask(comm, "send " + std::to_string(bytes) + " to " + std::to_string(peer), [=] {
    of(comm).group->post(of(comm).rank, peer, from, bytes);
    return 0;
  });
}
EXPORTED int ncclRecv(void* to, std::size_t bytes, int type, int peer, void* comm, void* /*stream*/) {
  if (type != 1) return 4;
  return ask(comm, "receive " + std::to_string(bytes) + " from " + std::to_string(peer),
             [=] { return of(comm).group->take(peer, of(comm).rank, to, bytes); });
}
EXPORTED int ncclGroupStart() {
  note("group");
  ++grouped;
  return 0;
}
EXPORTED int ncclGroupEnd() {
  note("end");
  if (--grouped > 0) return 0;
  int first = 0;
  for (const auto& work : std::exchange(asked, {}))
    if (const int code = work(); first == 0) first = code;
  return first;
}
EXPORTED int ncclCommGetAsyncError(void* comm, int* state) {
  Rank& self = self_of(comm);
  const bool under_way = !self.waits && (self.group->met < self.ranks || self.under_way > 0);
  if (self.under_way > 0) --self.under_way;
  *state = under_way ? 7 : failure.load();
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
EXPORTED void fake_nccl_refuse(int rank) {
  unconnected = rank;
}
EXPORTED void fake_nccl_hold(int rank) {
  held = rank;
}
EXPORTED int fake_nccl_begun() {
  return begun;
}
EXPORTED int fake_nccl_aborted() {
  return aborted;
}
EXPORTED int fake_nccl_destroyed() {
  return destroyed;
}
EXPORTED void fake_nccl_note(const char* text) {
  note(text);
}
EXPORTED const char* fake_nccl_log() {
  shown = std::exchange(log_, {});
  return shown.c_str();
}
