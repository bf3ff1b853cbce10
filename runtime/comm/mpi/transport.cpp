// See transport.hpp.
#include "runtime/comm/mpi/transport.hpp"

#include "runtime/comm/transport/spin_backoff.hpp"

namespace dlrun::runtime {
namespace {

constexpr int kPollsBeforeYield = 500;

}  // namespace

Result<Transport::Ticket> MpiTransport::send_start(std::span<const std::byte> data, int to) {
  std::size_t ticket = 0;
  TRY(mpi_.check(mpi_->send_start(data.data(), data.size(), to, &ticket), "MPI_Isend"));
  return Ticket{ticket};
}

Result<Transport::Ticket> MpiTransport::receive_start(std::span<std::byte> data, int from) {
  std::size_t ticket = 0;
  TRY(mpi_.check(mpi_->receive_start(data.data(), data.size(), from, &ticket), "MPI_Irecv"));
  receives_[ticket] = {from, data.size()};
  return Ticket{ticket};
}

Result<void> MpiTransport::wait(Ticket ticket) {
  return wait_any(std::span(&ticket, 1)).map([](std::size_t) {});
}

Result<std::size_t> MpiTransport::wait_any(std::span<const Ticket> tickets) {
  for (int polls = 0; !thread_.abandoned(); ++polls) {
    for (std::size_t i = 0; i < tickets.size(); ++i) {
      const auto ticket = static_cast<std::size_t>(tickets[i]);
      int done = 0;
      std::size_t bytes = 0;
      TRY(mpi_.check(mpi_->message_done(ticket, &done, &bytes), "MPI_Test"));
      if (done == 0) continue;
      TRY(check_length(ticket, bytes));
      return i;
    }
    if (thread_.awaited())
      spin_backoff(polls, kPollsBeforeYield);
    else
      short_sleep();
  }
  return fail(ErrorKind::lost, "a message was cancelled: this rank ends");
}

// MPI refuses a message that is too long, and takes one that is too short.
Result<void> MpiTransport::check_length(std::size_t ticket, std::size_t bytes) {
  const auto expected = receives_.find(ticket);
  if (expected == receives_.end()) return {};
  const Receive receive = expected->second;
  receives_.erase(expected);
  if (receive.bytes == bytes) return {};
  return fail(ErrorKind::internal, "rank {} sent {} bytes; expected {}", receive.from, bytes, receive.bytes);
}

}  // namespace dlrun::runtime
