// See stale_server.hpp.
#include "runtime/train/servers/stale_server.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::runtime {

StaleServer::StaleServer(Transport& link, Senders senders)
    : link_(link), senders_(std::move(senders)), gradients_(senders_.slices.weights().size()) {
  for (const int rank : senders_.ranks) {
    Sender& one = all_.emplace_back();
    one.rank = rank;
    one.packed.resize(bytes_of(senders_.dtype, gradients_.size()));
    one.weights.resize(gradients_.size());
  }
}

Result<void> StaleServer::run() {
  for (Sender& sender : all_) TRY(expect_order(sender));
  for (;;) {
    std::vector<Sender*> coming;
    std::vector<Transport::Ticket> tickets;
    for (Sender& sender : all_) {
      if (first_may_ask_ && &sender != &all_.front()) break;
      if (sender.at != Sender::At::order && sender.at != Sender::At::numbers) continue;
      coming.push_back(&sender);
      tickets.push_back(sender.next);
    }
    if (tickets.empty()) break;
    TRY(take(*coming[TRY(link_.wait_any(tickets))]));
    TRY(answer_all());
  }
  for (Sender& sender : all_) {
    if (sender.at == Sender::At::waits)
      return fail(ErrorKind::internal, "rank {} waits for ranks that have ended", sender.rank);
    TRY(link_.wait_for(sender.sent));
  }
  return {};
}

Result<void> StaleServer::expect_order(Sender& sender) {
  sender.at = Sender::At::order;
  sender.next = TRY(link_.receive_start(std::as_writable_bytes(std::span(&sender.order, 1)), sender.rank));
  return {};
}

Result<void> StaleServer::take(Sender& sender) {
  return sender.at == Sender::At::order ? take_order(sender) : take_gradients(sender);
}

Result<void> StaleServer::take_order(Sender& sender) {
  if (sender.order.kind != Order::Kind::state) first_may_ask_ = false;
  switch (sender.order.kind) {
    case Order::Kind::end:
      sender.at = Sender::At::ended;
      return {};
    case Order::Kind::state:
      TRY(senders_.send_state(link_, sender.rank));
      return expect_order(sender);
    case Order::Kind::fetch:
      sender.at = Sender::At::waits;
      return {};
    case Order::Kind::gradients:
      break;
  }
  for (const MessagePart& part : senders_.slices.parts()) {
    const std::span<std::byte> into(sender.packed.data() + bytes_of(senders_.dtype, part.offset),
                                    bytes_of(senders_.dtype, part.length));
    sender.parts.push_back(TRY(link_.receive_start(into, sender.rank)));
  }
  sender.at = Sender::At::numbers;
  sender.next = TRY(link_.receive_start(std::as_writable_bytes(std::span(&sender.numbers, 1)), sender.rank));
  return {};
}

// Messages come in their order: with the numbers, all parts are there.
Result<void> StaleServer::take_gradients(Sender& sender) {
  TRY(link_.wait_for(sender.parts));
  sender.parts.clear();
  update(sender);
  ++sender.finished;
  sender.at = Sender::At::waits;
  // Nobody has begun a step behind the one that follows the farthest: all hear of it before they end that.
  std::uint64_t farthest = 0;
  for (const Sender& one : all_) farthest = std::max(farthest, one.finished);
  if (sender.order.wants_barrier != 0 && barrier_after_ < sender.finished) barrier_after_ = farthest + 1;
  return {};
}

// The number of updates is what bias corrections read: here each sender's step is one.
void StaleServer::update(const Sender& sender) {
  UpdateStep step = sender.numbers.step;
  if (!std::exchange(counts_updates_, true)) updates_ = step.updates * all_.size();
  if (step.gradient_scale == 0) return;  // a sender without rows
  for (const MessagePart& part : senders_.slices.parts())
    unpack(senders_.dtype, gradients_.data() + part.offset,
           sender.packed.data() + bytes_of(senders_.dtype, part.offset), part.length);
  step.updates = updates_++;
  senders_.slices.update(step, gradients_);
}

std::uint64_t StaleServer::slowest() const {
  std::uint64_t out = all_.front().finished;
  for (const Sender& one : all_) out = std::min(out, one.finished);
  return out;
}

bool StaleServer::fetches(const Sender& sender) {
  return sender.at == Sender::At::waits && sender.order.kind == Order::Kind::fetch;
}

// Those at a barrier go on together: who was let go alone could begin a step before another one has fetched.
Result<void> StaleServer::answer_all() {
  const bool at_barrier = std::all_of(all_.begin(), all_.end(), fetches);
  for (Sender& sender : all_) {
    if (sender.at != Sender::At::waits) continue;
    const bool goes_on = fetches(sender) ? at_barrier : slowest() + senders_.staleness >= sender.finished;
    if (goes_on) TRY(answer(sender));
  }
  if (at_barrier) first_may_ask_ = true;
  return {};
}

// From a copy: the weights change while it is under way.
Result<void> StaleServer::answer(Sender& sender) {
  TRY(link_.wait_for(std::exchange(sender.sent, {})));
  const std::span<const float> weights = senders_.slices.weights();
  std::copy(weights.begin(), weights.end(), sender.weights.begin());
  const auto lead = static_cast<std::uint32_t>(sender.finished - slowest());
  most_lead_ = std::max(most_lead_, lead);
  sender.answer = {.barrier_after = barrier_after_, .lead = lead, .most_lead = most_lead_};
  sender.sent.push_back(TRY(link_.send_start(message_of(sender.answer), sender.rank)));
  TRY(senders_.send_parts(link_, sender.weights, sender.rank, sender.sent));
  return expect_order(sender);
}

}  // namespace dlrun::runtime
