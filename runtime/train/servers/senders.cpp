// See senders.hpp.
#include "runtime/train/servers/senders.hpp"

namespace dlrun::runtime {
namespace {

constexpr int kFirstWorker = 0;

template <class Number>
Result<void> receive_all(Transport& link, std::span<Number> into) {
  return link.wait(TRY(link.receive_start(std::as_writable_bytes(into), kFirstWorker)));
}

Result<void> receive_parts(Transport& link, const std::vector<MessagePart>& parts, std::span<float> into) {
  for (const MessagePart& part : parts) TRY(receive_all(link, into.subspan(part.offset, part.length)));
  return {};
}

}  // namespace

Result<Senders> Senders::connect(Transport& link, const Optimizer& optimizer, CommDtype dtype) {
  const ServerSetup setup = TRY(receive_one<ServerSetup>(link, kFirstWorker));
  std::vector<std::int32_t> ranks(setup.senders);
  TRY(receive_all(link, std::span(ranks)));
  std::vector<SliceFacts> facts(setup.slices);
  TRY(receive_all(link, std::span(facts)));
  Senders out{.ranks = {ranks.begin(), ranks.end()},
              .staleness = setup.staleness,
              .dtype = dtype,
              .slices = TRY(ServerSlices::make(optimizer, std::move(facts)))};
  TRY(receive_parts(link, out.slices.parts(), out.slices.weights()));
  for (std::size_t slot = 0; slot < out.slices.state_slots(); ++slot)
    TRY(receive_parts(link, out.slices.parts(), out.slices.state(slot)));
  return out;
}

Result<void> Senders::send_parts(Transport& link, std::span<const float> numbers, int to,
                                 std::vector<Transport::Ticket>& tickets) const {
  for (const MessagePart& part : slices.parts())
    tickets.push_back(TRY(link.send_start(std::as_bytes(numbers.subspan(part.offset, part.length)), to)));
  return {};
}

Result<void> Senders::send_state(Transport& link, int to) const {
  std::vector<Transport::Ticket> tickets;
  for (std::size_t slot = 0; slot < slices.state_slots(); ++slot)
    TRY(send_parts(link, slices.state(slot), to, tickets));
  return link.wait_for(tickets);
}

}  // namespace dlrun::runtime
