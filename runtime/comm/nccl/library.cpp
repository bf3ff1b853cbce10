#include "runtime/comm/nccl/library.hpp"

#include <cassert>

namespace dlrun::runtime {

namespace {

// ncclConfig_t as it was in 2.14: a later NCCL takes what it adds for unset.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 0;
};

constexpr int kByte = 1, kFloat = 7, kBfloat16 = 9, kSum = 0;  // ncclUint8, ncclFloat, ncclBfloat16, ncclSum

int number_of(DeviceNumber type) {
  return type == DeviceNumber::bf16 ? kBfloat16 : kFloat;
}

}  // namespace

Result<NcclLibrary> NcclLibrary::open(const std::filesystem::path& name) {
  auto loaded = SharedLibrary::open(name);
  if (!loaded) {
    Error error = std::move(loaded).error();
    error.what = "NCCL cannot be loaded: " + error.what;
    error.hint = "load the site's NCCL module, or add its folder to LD_LIBRARY_PATH";
    return fail(std::move(error));
  }
  NcclLibrary out(std::move(*loaded));
  TRY(out.load());
  return out;
}

Result<void> NcclLibrary::load() {
  get_version_ = TRY(library_.symbol<int(int*)>("ncclGetVersion"));
  get_unique_id_ = TRY(library_.symbol<int(NcclId*)>("ncclGetUniqueId"));
  comm_init_rank_ = TRY(library_.symbol<int(Comm*, int, NcclId, int)>("ncclCommInitRank"));
  if (auto found = library_.symbol<int(Comm*, int, NcclId, int, void*)>("ncclCommInitRankConfig"))
    comm_init_rank_config_ = *found;
  all_reduce_ =
      TRY(library_.symbol<int(const void*, void*, std::size_t, int, int, Comm, void*)>("ncclAllReduce"));
  reduce_ =
      TRY(library_.symbol<int(const void*, void*, std::size_t, int, int, int, Comm, void*)>("ncclReduce"));
  reduce_scatter_ =
      TRY(library_.symbol<int(const void*, void*, std::size_t, int, int, Comm, void*)>("ncclReduceScatter"));
  all_gather_ = TRY(library_.symbol<int(const void*, void*, std::size_t, int, Comm, void*)>("ncclAllGather"));
  broadcast_ =
      TRY(library_.symbol<int(const void*, void*, std::size_t, int, int, Comm, void*)>("ncclBroadcast"));
  send_ = TRY(library_.symbol<int(const void*, std::size_t, int, int, Comm, void*)>("ncclSend"));
  receive_ = TRY(library_.symbol<int(void*, std::size_t, int, int, Comm, void*)>("ncclRecv"));
  group_start_ = TRY(library_.symbol<int()>("ncclGroupStart"));
  group_end_ = TRY(library_.symbol<int()>("ncclGroupEnd"));
  comm_get_async_error_ = TRY(library_.symbol<int(Comm, int*)>("ncclCommGetAsyncError"));
  comm_abort_ = TRY(library_.symbol<int(Comm)>("ncclCommAbort"));
  comm_destroy_ = TRY(library_.symbol<int(Comm)>("ncclCommDestroy"));
  get_error_string_ = TRY(library_.symbol<const char*(int)>("ncclGetErrorString"));
  get_last_error_ = TRY(library_.symbol<const char*(Comm)>("ncclGetLastError"));
  return {};
}

std::string NcclLibrary::version() const {
  int number = 0;
  if (get_version_(&number) != success || number < 20000) return "of an unknown version";
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

// NCCL's short word for the code, and its own last message where there is one.
Result<void> NcclLibrary::checked(int code, const char* call, Comm comm) const {
  if (code == success || code == in_progress) return {};
  const char* const last = get_last_error_(comm);
  const std::string more = last == nullptr || *last == '\0' ? "" : fmt::format(" ({})", last);
  return fail(
      Error{.kind = ErrorKind::lost,
            .what = fmt::format("{} failed in NCCL {}: {}{}", call, version(), get_error_string_(code), more),
            .hint = "run again with NCCL_DEBUG=WARN for more"});
}

Result<NcclId> NcclLibrary::new_id() const {
  NcclId id;
  TRY(checked(get_unique_id_(&id), "ncclGetUniqueId", nullptr));
  return id;
}

Result<NcclLibrary::Comm> NcclLibrary::connect(const NcclId& id, int rank, int ranks) const {
  Comm comm = nullptr;
  TRY(checked(comm_init_rank_(&comm, ranks, id, rank), "ncclCommInitRank", nullptr));
  return comm;
}

Result<NcclLibrary::Comm> NcclLibrary::begin_to_connect(const NcclId& id, int rank, int ranks) const {
  assert(can_connect_without_waiting());
  Comm comm = nullptr;
  Config config;
  TRY(checked(comm_init_rank_config_(&comm, ranks, id, rank, &config), "ncclCommInitRankConfig", nullptr));
  return comm;
}

Result<NcclLibrary::Progress> NcclLibrary::progress(Comm comm) const {
  int state = success;
  TRY(checked(comm_get_async_error_(comm, &state), "ncclCommGetAsyncError", comm));
  TRY(checked(state, "a call over the GPUs", comm));
  return state == in_progress ? Progress::under_way : Progress::done;
}

Result<void> NcclLibrary::allreduce(void* data, std::size_t count, DeviceNumber type, Comm comm,
                                    void* stream) const {
  return checked(all_reduce_(data, data, count, number_of(type), kSum, comm, stream), "ncclAllReduce", comm);
}

Result<void> NcclLibrary::reduce(float* data, std::size_t count, int root, Comm comm, void* stream) const {
  return checked(reduce_(data, data, count, kFloat, kSum, root, comm, stream), "ncclReduce", comm);
}

Result<void> NcclLibrary::reduce_scatter(const void* from, void* to, std::size_t count, DeviceNumber type,
                                         Comm comm, void* stream) const {
  return checked(reduce_scatter_(from, to, count, number_of(type), kSum, comm, stream), "ncclReduceScatter",
                 comm);
}

Result<void> NcclLibrary::allgather(const void* from, void* to, std::size_t bytes, Comm comm,
                                    void* stream) const {
  return checked(all_gather_(from, to, bytes, kByte, comm, stream), "ncclAllGather", comm);
}

Result<void> NcclLibrary::broadcast(void* data, std::size_t bytes, int root, Comm comm, void* stream) const {
  return checked(broadcast_(data, data, bytes, kByte, root, comm, stream), "ncclBroadcast", comm);
}

Result<void> NcclLibrary::send(const void* from, std::size_t bytes, int peer, Comm comm, void* stream) const {
  return checked(send_(from, bytes, kByte, peer, comm, stream), "ncclSend", comm);
}

Result<void> NcclLibrary::receive(void* to, std::size_t bytes, int peer, Comm comm, void* stream) const {
  return checked(receive_(to, bytes, kByte, peer, comm, stream), "ncclRecv", comm);
}

Result<void> NcclLibrary::check(Comm comm) const {
  int state = success;
  TRY(checked(comm_get_async_error_(comm, &state), "ncclCommGetAsyncError", comm));
  return checked(state, "an allreduce over the GPUs", comm);
}

void NcclLibrary::abort(Comm comm) const {
  comm_abort_(comm);
}

void NcclLibrary::destroy(Comm comm) const {
  comm_destroy_(comm);
}

}  // namespace dlrun::runtime
