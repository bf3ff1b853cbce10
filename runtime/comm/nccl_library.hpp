// NcclLibrary: NCCL by its public API, loaded at run time. The few types are declared here as nccl.h of NCCL
// 2 has them (their numbers are part of its stable interface), so that a build needs no NCCL.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>

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
  // On the calling thread's current device. All ranks call it at once.
  Result<Comm> connect(const NcclId& id, int rank, int ranks) const;
  Result<void> sum_floats(float* data, std::size_t count, Comm comm, void* stream) const;
  // What has gone wrong since the last call, without waiting.
  Result<void> check(Comm comm) const;
  // Ends what runs on the device at once; returns once no graph holds on to the communicator.
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
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, Comm, void*) = nullptr;
  int (*comm_get_async_error_)(Comm, int*) = nullptr;
  int (*comm_abort_)(Comm) = nullptr;
  int (*comm_destroy_)(Comm) = nullptr;
  const char* (*get_error_string_)(int) = nullptr;
  const char* (*get_last_error_)(Comm) = nullptr;
};

}  // namespace dlrun::runtime
