// See parameter_server.hpp.
#include "runtime/train/servers/parameter_server.hpp"

#include <array>

#include "runtime/train/parameter_update.hpp"
#include "runtime/train/servers/senders.hpp"
#include "runtime/train/servers/stale_server.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kPartsAhead = 4;  // that are under way to this server, from each sender

// All senders are at the same step.
class SynchronousServer {
 public:
  SynchronousServer(Transport& link, const ServerPlace& place, Senders senders)
      : link_(link),
        place_(place),
        senders_(std::move(senders)),
        sums_(senders_.slices.weights().size()),
        slots_(kPartsAhead * senders_.ranks.size() * kPartFloats) {}

  Result<void> run() {
    for (;;) {
      const Order order = TRY(common_order());
      if (order.kind == Order::Kind::end) return link_.wait_for(sent_);
      if (order.kind == Order::Kind::gradients) TRY(take_step());
      TRY(answer());
    }
  }

 private:
  // The state is asked for between two steps, by one worker.
  Result<Order> next_order(int rank) {
    for (;;) {
      const Order order = TRY(receive_one<Order>(link_, rank));
      if (order.kind != Order::Kind::state) return order;
      TRY(senders_.send_state(link_, rank));
    }
  }

  Result<Order> common_order() {
    Order out;
    for (std::size_t i = 0; i < senders_.ranks.size(); ++i) {
      const Order one = TRY(next_order(senders_.ranks[i]));
      if (i == 0) out = one;
      if (one.kind != out.kind)
        return fail(ErrorKind::internal, "rank {} asks its server for something else than rank {}",
                    senders_.ranks[i], senders_.ranks[0]);
    }
    return out;
  }

  std::span<std::byte> slot(std::size_t part, std::size_t sender) {
    const std::size_t number = part % kPartsAhead * senders_.ranks.size() + sender;
    return {reinterpret_cast<std::byte*>(slots_.data() + number * kPartFloats),
            bytes_of(senders_.dtype, senders_.slices.parts()[part].length)};
  }

  Result<void> expect(std::size_t part) {
    for (std::size_t i = 0; i < senders_.ranks.size(); ++i)
      coming_[part % kPartsAhead].push_back(TRY(link_.receive_start(slot(part, i), senders_.ranks[i])));
    return {};
  }

  // In the order of the ranks.
  void add(std::size_t part) {
    const MessagePart& at = senders_.slices.parts()[part];
    float* const sum = sums_.data() + at.offset;
    unpack(senders_.dtype, sum, slot(part, 0).data(), at.length);
    for (std::size_t i = 1; i < senders_.ranks.size(); ++i)
      add_unpacked(senders_.dtype, sum, slot(part, i).data(), at.length);
  }

  Result<void> take_step() {
    TRY(link_.wait_for(sent_));  // the weights of the step before
    sent_.clear();
    const std::size_t parts = senders_.slices.parts().size();
    for (std::size_t part = 0; part < std::min(kPartsAhead, parts); ++part) TRY(expect(part));
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<Transport::Ticket>& coming = coming_[part % kPartsAhead];
      TRY(link_.wait_for(coming));
      coming.clear();
      add(part);
      if (part + kPartsAhead < parts) TRY(expect(part + kPartsAhead));
    }
    Numbers numbers;
    for (std::size_t i = senders_.ranks.size(); i-- > 0;)
      numbers = TRY(receive_one<Numbers>(link_, senders_.ranks[i]));
    UpdateStep step = numbers.step;
    step.gradient_scale *= TRY(clip_factor(step));
    senders_.slices.update(step, sums_);
    return {};
  }

  // Of the norm of all servers' gradients.
  Result<float> clip_factor(const UpdateStep& step) {
    if (step.clip_norm == 0) return 1.0F;
    const double own = square_sum_of(sums_);
    std::vector<double> all(static_cast<std::size_t>(place_.servers), own);
    std::vector<Transport::Ticket> tickets;
    for (int server = 0; server < place_.servers; ++server) {
      const int rank = place_.first + server;
      if (rank == link_.rank()) continue;
      tickets.push_back(TRY(link_.send_start(message_of(own), rank)));
      const std::span<double> there(&all[static_cast<std::size_t>(server)], 1);
      tickets.push_back(TRY(link_.receive_start(std::as_writable_bytes(there), rank)));
    }
    TRY(link_.wait_for(tickets));
    double squares = 0;
    for (const double one : all) squares += one;
    return static_cast<float>(clipping_factor(step.clip_norm, squares, step.gradient_scale));
  }

  Result<void> answer() {
    for (const int rank : senders_.ranks) {
      sent_.push_back(TRY(link_.send_start(message_of(answer_), rank)));
      TRY(senders_.send_parts(link_, senders_.slices.weights(), rank, sent_));
    }
    return {};
  }

  Transport& link_;
  ServerPlace place_;
  Senders senders_;
  std::vector<float> sums_, slots_;
  std::array<std::vector<Transport::Ticket>, kPartsAhead> coming_;
  std::vector<Transport::Ticket> sent_;
  Answer answer_;  // nobody is ahead: each step is a barrier
};

}  // namespace

Result<void> serve_parameters(Transport& link, const ServerPlace& place, const Optimizer& optimizer,
                              CommDtype dtype) {
  Senders senders = TRY(Senders::connect(link, optimizer, dtype));
  if (senders.staleness > 0) return StaleServer(link, std::move(senders)).run();
  return SynchronousServer(link, place, std::move(senders)).run();
}

}  // namespace dlrun::runtime
