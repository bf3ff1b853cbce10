// StaleServer: a parameter server whose senders need not be at the same step: see parameter_server.hpp. It
// decides two things: when a sender's bound lets it go on, and behind which step the next barrier is.
#pragma once

#include "runtime/train/servers/senders.hpp"

namespace dlrun::runtime {

class StaleServer {
 public:
  StaleServer(Transport& link, Senders senders);
  Result<void> run();

 private:
  struct Sender {
    enum class At { order, numbers, waits, ended } at = At::order;
    int rank = 0;
    Order order;
    Numbers numbers;
    Transport::Ticket next{};              // what is to come from it: an order, or numbers
    std::vector<Transport::Ticket> parts;  // of its gradients
    std::vector<std::byte> packed;         // as they come
    std::vector<float> weights;            // on their way to it
    Answer answer;
    std::vector<Transport::Ticket> sent;
    std::uint64_t finished = 0;  // steps
  };

  Result<void> expect_order(Sender& sender);
  Result<void> take(Sender& sender);
  Result<void> take_order(Sender& sender);
  Result<void> take_gradients(Sender& sender);
  void update(const Sender& sender);
  static bool fetches(const Sender& sender);
  Result<void> answer_all();
  std::uint64_t slowest() const;
  Result<void> answer(Sender& sender);

  Transport& link_;
  Senders senders_;
  std::vector<Sender> all_;
  std::vector<float> gradients_;  // of the sender that is looked at
  std::uint64_t updates_ = 0;     // made so far, or counted by the first sender at its first step
  bool counts_updates_ = false;
  std::uint64_t barrier_after_ = 0;
  std::uint32_t most_lead_ = 0;
  // Behind a barrier, until the first sender's next step: the state that it may ask for belongs to the
  // weights that it has, so nobody else's step comes before that.
  bool first_may_ask_ = false;
};

}  // namespace dlrun::runtime
