// NcclLibrary: NCCL by its public API, loaded at run time. The few types are declared here as nccl.h of NCCL
// 2 has them (their numbers are part of its stable interface), so that a build needs no NCCL.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>

#include "runtime/engine/device_group.hpp"
#include "src/base/result.hpp"
#include "src/base/shared_library.hpp"

namespace dlrun::runtime {

struct NcclId {  // ncclUniqueId
  std::array<char, 128> bytes{};
};

class NcclLibrary {
 public:
  using Comm = void*;  // ncclComm_t
  enum Code : int { success = 0, in_progress = 7 };

  static Result<NcclLibrary> open(const std::filesystem::path& name = "libnccl.so.2");

  std::string version() const;  // "2.28.3"
  Result<NcclId> new_id() const;
  /// Connects the calling thread's current device. All ranks must call it at the same time.
  Result<Comm> connect(const NcclId& id, int rank, int ranks) const;
  /// The same without waiting for the others: what is asked of this communicator, from the connection on, is
  /// only done once progress() says so. Where the library can, which is from NCCL 2.14 on.
  Result<Comm> begin_to_connect(const NcclId& id, int rank, int ranks) const;
  bool can_connect_without_waiting() const { return comm_init_rank_config_ != nullptr; }
  enum class Progress { done, under_way };
  Result<Progress> progress(Comm comm) const;
  /// Sums in place. This and the following functions enqueue work on `stream`.
  Result<void> allreduce(void* data, std::size_t count, DeviceNumber type, Comm comm, void* stream) const;
  /// The sum comes to `root`, in place; the others keep what they have.
  Result<void> reduce(float* data, std::size_t count, int root, Comm comm, void* stream) const;
  /// Sums the `count` numbers at `from` + rank * count over all ranks, and writes this rank's sum to `to`.
  Result<void> reduce_scatter(const void* from, void* to, std::size_t count, DeviceNumber type, Comm comm,
                              void* stream) const;
  /// Gathers `bytes` of each rank at `to` + rank * bytes.
  Result<void> allgather(const void* from, void* to, std::size_t bytes, Comm comm, void* stream) const;
  Result<void> broadcast(void* data, std::size_t bytes, int root, Comm comm, void* stream) const;
  Result<void> send(const void* from, std::size_t bytes, int peer, Comm comm, void* stream) const;
  Result<void> receive(void* to, std::size_t bytes, int peer, Comm comm, void* stream) const;
  // What `calls` asks for is done at once: as many messages must be that wait for each other.
  template <class Calls>
  Result<void> together(const Calls& calls) const {
    TRY(checked(group_start_(), "ncclGroupStart", nullptr));
    Result<void> asked = calls();
    Result<void> ended = checked(group_end_(), "ncclGroupEnd", nullptr);
    return asked ? ended : asked;
  }
  /// What has gone wrong since the last call, without waiting.
  Result<void> check(Comm comm) const;
  /// Ends what runs on the device at once; returns once no graph holds on to the communicator.
  void abort(Comm comm) const;
  void destroy(Comm comm) const;

 private:
  explicit NcclLibrary(SharedLibrary library) : library_(std::move(library)) {}
  Result<void> load();
  Result<void> checked(int code, const char* call, Comm comm) const;

  SharedLibrary library_;
  int (*get_version_)(int*) = nullptr;
  int (*get_unique_id_)(NcclId*) = nullptr;
  int (*comm_init_rank_)(Comm*, int, NcclId, int) = nullptr;
  int (*comm_init_rank_config_)(Comm*, int, NcclId, int, void*) = nullptr;  // null before 2.14
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*reduce_)(const void*, void*, std::size_t, int, int, int, Comm, void*) = nullptr;
  int (*reduce_scatter_)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*all_gather_)(const void*, void*, std::size_t, int, Comm, void*) = nullptr;
  int (*broadcast_)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*send_)(const void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*receive_)(void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  int (*comm_get_async_error_)(Comm, int*) = nullptr;
  int (*comm_abort_)(Comm) = nullptr;
  int (*comm_destroy_)(Comm) = nullptr;
  const char* (*get_error_string_)(int) = nullptr;
  const char* (*get_last_error_)(Comm) = nullptr;
};

}  // namespace dlrun::runtime
