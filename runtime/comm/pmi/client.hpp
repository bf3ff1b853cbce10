// PmiClient: a rank's side of the PMI-1 wire protocol on the descriptor that the launcher gave it: how ranks
// exchange a few texts where no MPI is loaded. It owns the protocol alone: no MPI may use the descriptor too.
// And pmi_finalize(), for a rank that has to leave its MPI without MPI_Finalize.
#pragma once

#include <string>
#include <string_view>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

class PmiClient {
 public:
  /// PMI_FD, PMI_RANK and PMI_SIZE, and the first words of the protocol.
  static Result<PmiClient> start(const Environment& environment);

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// What is put is seen by all after the next barrier.
  Result<void> put(std::string_view key, std::string_view value);
  Result<std::string> get(std::string_view key);
  Result<void> barrier();
  Result<void> finalize();
  void abort(int code);  // ends the job; there is no answer

 private:
  PmiClient(int fd, int rank, int size) : fd_(fd), rank_(rank), size_(size) {}
  Result<std::string> ask(const std::string& request, std::string_view expected);

  int fd_;  // the launcher's: not ours to close
  int rank_, size_;
  std::string space_;  // the name of the key-value space
};

/// On descriptor number `pmi_fd`, after the last call of an MPI that owned it: the launcher's barrier, so
/// that no rank is gone while another still reads from it, then "finalize". The descriptor stays open.
Result<void> pmi_finalize(std::string_view pmi_fd);

}  // namespace dlrun::runtime
