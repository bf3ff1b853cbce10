// See mpi_transport.hpp.
#include "runtime/comm/mpi/transport.hpp"

#include "runtime/comm/transport/spin_backoff.hpp"

namespace dlrun::runtime {
namespace {

constexpr int looks_before_yield = 500;

}  // namespace

Result<Transport::Ticket> MpiTransport::send_start(std::span<const std::byte> data, int to) {
  std::size_t ticket = 0;
  TRY(mpi_.check(mpi_->send_start(data.data(), data.size(), to, &ticket), "MPI_Isend"));
  return Ticket{ticket};
}

Result<Transport::Ticket> MpiTransport::receive_start(std::span<std::byte> data, int from) {
  std::size_t ticket = 0;
  TRY(mpi_.check(mpi_->receive_start(data.data(), data.size(), from, &ticket), "MPI_Irecv"));
  return Ticket{ticket};
}

Result<void> MpiTransport::wait(Ticket ticket) {
  for (int looks = 0; !thread_.abandoned(); ++looks) {
    int done = 0;
    TRY(mpi_.check(mpi_->message_done(static_cast<std::size_t>(ticket), &done), "MPI_Test"));
    if (done != 0) return {};
    if (thread_.awaited())
      spin_backoff(looks, looks_before_yield);
    else
      sleep_between_looks();
  }
  return fail(ErrorKind::lost, "a message was given up: this rank ends");
}

}  // namespace dlrun::runtime
