// See server_client.hpp.
#include "runtime/train/servers/server_client.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <utility>

#include "runtime/base/counted.hpp"
#include "runtime/base/name_pattern.hpp"
#include "runtime/engine/state_layout.hpp"

namespace dlrun::runtime {
namespace {

// How the parameter of a slice is updated.
SliceFacts facts_of(const PlacedSlice& placed, const TrainSpec& spec, const Engine& engine,
                    std::span<const GradientSlice> tensors) {
  const auto of = std::find_if(tensors.begin(), tensors.end(), [&](const GradientSlice& tensor) {
    return placed.offset >= tensor.offset && placed.offset < tensor.offset + tensor.length;
  });
  const auto info = std::find_if(engine.tensors().begin(), engine.tensors().end(), [&](const auto& tensor) {
    return tensor.name == of->name && tensor.role == TensorInfo::Role::parameter;
  });
  assert(of != tensors.end() && info != engine.tensors().end());
  return {.length = placed.length,
          .frozen = matches_any(spec.freeze, of->name) ? 1U : 0U,
          .decays = spec.optimizer.no_decay.covers(of->name, info->shape) ? 0U : 1U,
          .is_vector = info->shape.size() == 1 ? 1U : 0U};
}

// As numbers that a node's memory carries.
using AnswerAsFloats = std::array<float, sizeof(Answer) / sizeof(float)>;

}  // namespace

ServerClient::ServerClient(const TrainSpec& spec, Engine& engine, const Ranks& ranks)
    : engine_(engine),
      served_(*engine.served()),
      ranks_(ranks),
      dtype_(spec.allreduce.dtype),
      staleness_(spec.parameter_server->staleness),
      state_slots_(spec.optimizer.optimizer.traits->state.size()) {}

Result<std::unique_ptr<ServerClient>> ServerClient::make(const TrainSpec& spec, Engine& engine,
                                                         const Ranks& ranks, const Environment& environment) {
  if (engine.served() == nullptr)
    return fail(ErrorKind::unavailable, "this engine does not take its weights from parameter servers");
  std::unique_ptr<ServerClient> out(new ServerClient(spec, engine, ranks));
  TRY(out->place(spec));
  out->weights_ = TRY(out->served_.weights());
  using NodeSum = ParameterServerSpec::NodeSum;
  const NodeSum asked = spec.parameter_server->node_sum;
  const bool by_nodes = asked == NodeSum::on || (asked == NodeSum::automatic && out->staleness_ == 0);
  if (by_nodes) out->node_ = TRY(NodeGradients::make(ranks.workers, environment));
  if (out->dtype_ != CommDtype::f32) out->packed_.resize(bytes_of(out->dtype_, engine.gradients().size()));
  TRY(out->set_up(spec));
  return out;
}

Result<void> ServerClient::place(const TrainSpec& spec) {
  const std::vector<GradientSlice> tensors = engine_.gradient_slices();
  slices_ = runtime::place(tensors, spec.parameter_server->placement, servers());
  loads_ = runtime::loads(slices_, servers(), servers(), dtype_);
  for (ServerLoad& load : loads_) load.rank += ranks_.workers.size();
  const auto empty =
      std::find_if(loads_.begin(), loads_.end(), [](const auto& load) { return load.pieces == 0; });
  if (empty != loads_.end())
    return fail(
        Error{.kind = ErrorKind::input,
              .what = fmt::format("roles.ps has {} servers, but the model has {} tensors or parts to "
                                  "place on them ({}): one would have nothing",
                                  servers(), slices_.size(), name_of(spec.parameter_server->placement)),
              .hint = "use fewer servers, or train.parameter-server.placement: split"});
  for (const PlacedSlice& slice : slices_) {
    std::vector<MessagePart> parts;
    cut_into_parts(slice.offset, slice.length, parts);
    for (const MessagePart& part : parts) pieces_.push_back({part, ranks_.workers.size() + slice.server});
  }
  return {};
}

std::vector<int> ServerClient::senders() const {
  std::vector<int> out;
  for (int rank = 0; rank < ranks_.workers.size(); ++rank)
    if (node_ == nullptr || node_->sender_of()[static_cast<std::size_t>(rank)] == rank) out.push_back(rank);
  return out;
}

std::vector<int> ServerClient::members() const {
  return node_ == nullptr ? std::vector<int>{ranks_.workers.rank()} : node_->members();
}

std::string ServerClient::description() const {
  const std::string nodes = node_ == nullptr ? ""
                                             : fmt::format("; gradients are added inside {} first",
                                                           counted(node_->nodes(), "node"));
  const std::string how = staleness_ == 0
                              ? "synchronous"
                              : fmt::format(
                                    "asynchronous with a staleness of at most {} steps: another run "
                                    "has other bits",
                                    staleness_);
  return fmt::format("{} parameter servers of their own for {} workers, {}{}", servers(),
                     ranks_.workers.size(), how, nodes);
}

Result<void> ServerClient::set_up(const TrainSpec& spec) {
  if (ranks_.workers.rank() != 0) return {};
  TRY(ranks_.world.exchange_start([this, &spec](Transport& link) -> Result<void> {
    for (int server = 0; server < servers(); ++server) {
      std::vector<PlacedSlice> own;
      std::copy_if(slices_.begin(), slices_.end(), std::back_inserter(own),
                   [&](const PlacedSlice& slice) { return slice.server == server; });
      TRY(send_setup(link, ranks_.workers.size() + server, own, spec));
    }
    return {};
  }));
  return ranks_.world.wait_all();
}

Result<void> ServerClient::send_setup(Transport& link, int server, const std::vector<PlacedSlice>& slices,
                                      const TrainSpec& spec) {
  const std::vector<int> of = senders();
  const std::vector<std::int32_t> all(of.begin(), of.end());
  const std::vector<GradientSlice> tensors = engine_.gradient_slices();
  std::vector<SliceFacts> facts;
  for (const PlacedSlice& slice : slices) facts.push_back(facts_of(slice, spec, engine_, tensors));
  const ServerSetup setup{facts.size(), static_cast<std::uint32_t>(all.size()),
                          static_cast<std::uint32_t>(staleness_)};
  TRY(send_now(link, message_of(setup), server));
  TRY(send_now(link, std::as_bytes(std::span(all)), server));
  TRY(send_now(link, std::as_bytes(std::span(facts)), server));
  for (const Piece& piece : pieces_)
    if (piece.rank == server)
      TRY(send_now(link, std::as_bytes(weights_.subspan(piece.part.offset, piece.part.length)), server));
  std::vector<float> state;
  for (std::size_t slot = 0; slot < state_slots_; ++slot)
    for (const Piece& piece : pieces_) {
      if (piece.rank != server) continue;
      state.resize(piece.part.length);
      TRY(served_.read_state(slot, piece.part.offset, state));
      TRY(send_now(link, std::as_bytes(std::span(state)), server));
    }
  return {};
}

Result<void> ServerClient::start(const Bucket& bucket) {
  return ranks_.world.exchange_start([this, bucket](Transport& link) { return send_bucket(link, bucket); });
}

Result<void> ServerClient::order(Transport& link, Order::Kind kind) {
  order_ = {.kind = kind, .wants_barrier = std::exchange(wants_barrier_, false) ? 1U : 0U};
  for (int server = ranks_.workers.size(); server < ranks_.world.size(); ++server)
    TRY(send_now(link, message_of(order_), server));
  return {};
}

// Any of a node's workers may ask.
Result<void> ServerClient::begin_step(Transport& link) {
  if (node_) {
    std::array<float, kSliceAlignment> asks{wants_barrier_ ? 1.0F : 0.0F};
    node_->add(asks);
    wants_barrier_ = sends() && asks[0] > 0;
  }
  return sends() ? order(link, Order::Kind::gradients) : Result<void>{};
}

Result<void> ServerClient::send_bucket(Transport& link, const Bucket& bucket) {
  if (!std::exchange(began_, true)) TRY(begin_step(link));
  if (node_) node_->add(engine_.gradients().subspan(bucket.offset, bucket.length));
  if (!sends()) return {};
  for (const Piece& piece : pieces_)
    if (piece.part.offset >= bucket.offset && piece.part.offset < bucket.offset + bucket.length)
      TRY(send_piece(link, piece));
  return {};
}

Result<void> ServerClient::send_piece(Transport& link, const Piece& piece) {
  const std::span<const float> numbers = engine_.gradients().subspan(piece.part.offset, piece.part.length);
  std::span<const std::byte> message = std::as_bytes(numbers);
  if (dtype_ != CommDtype::f32) {
    std::byte* const place = packed_.data() + bytes_of(dtype_, piece.part.offset);
    pack(dtype_, place, numbers.data(), numbers.size());
    message = {place, bytes_of(dtype_, numbers.size())};
  }
  sent_.push_back(TRY(link.send_start(message, piece.rank)));
  return {};
}

Result<void> ServerClient::update(const UpdateStep& step) {
  ++steps_;
  return take_weights(step);
}

Result<void> ServerClient::fetch() {
  return take_weights(std::nullopt);
}

Result<void> ServerClient::take_weights(const std::optional<UpdateStep>& step) {
  if (step) numbers_ = {*step};
  const bool updates = step.has_value();
  TRY(ranks_.world.exchange_start([this, updates](Transport& link) -> Result<void> {
    assert(!updates || began_);
    began_ = false;
    if (sends()) TRY(exchange_weights(link, updates ? &numbers_ : nullptr));
    if (!node_) return {};
    auto carried = std::bit_cast<AnswerAsFloats>(answer_);
    node_->share(weights_.first(engine_.gradients().size() - engine_.spare_slots().size()));
    node_->share(carried);
    answer_ = std::bit_cast<Answer>(carried);
    return {};
  }));
  TRY(ranks_.world.wait_all());
  return served_.weights_changed();
}

Result<void> ServerClient::exchange_weights(Transport& link, const Numbers* numbers) {
  TRY(link.wait_for(std::exchange(sent_, {})));
  if (numbers == nullptr) TRY(order(link, Order::Kind::fetch));
  std::vector<Answer> answers(static_cast<std::size_t>(servers()));
  std::vector<Transport::Ticket> tickets;
  for (int server = 0; server < servers(); ++server) {
    const int rank = ranks_.workers.size() + server;
    if (numbers != nullptr) tickets.push_back(TRY(link.send_start(message_of(*numbers), rank)));
    const std::span<Answer> answer(&answers[static_cast<std::size_t>(server)], 1);
    tickets.push_back(TRY(link.receive_start(std::as_writable_bytes(answer), rank)));
  }
  for (const Piece& piece : pieces_) {
    const std::span<float> into = weights_.subspan(piece.part.offset, piece.part.length);
    tickets.push_back(TRY(link.receive_start(std::as_writable_bytes(into), piece.rank)));
  }
  TRY(link.wait_for(tickets));
  answer_ = answers.front();  // one server says where the next barrier is
  for (const Answer& one : answers) {
    answer_.lead = std::max(answer_.lead, one.lead);
    answer_.most_lead = std::max(answer_.most_lead, one.most_lead);
  }
  return {};
}

Result<void> ServerClient::read_state() {
  TRY(ranks_.world.exchange_start([this](Transport& link) { return receive_state(link); }));
  return ranks_.world.wait_all();
}

Result<void> ServerClient::receive_state(Transport& link) {
  TRY(order(link, Order::Kind::state));
  std::vector<float> state;
  for (std::size_t slot = 0; slot < state_slots_; ++slot)
    for (const Piece& piece : pieces_) {
      state.resize(piece.part.length);
      TRY(link.wait(TRY(link.receive_start(std::as_writable_bytes(std::span(state)), piece.rank))));
      TRY(served_.write_state(slot, piece.part.offset, state));
    }
  return {};
}

Result<void> ServerClient::finish() {
  if (!sends()) return {};
  TRY(ranks_.world.exchange_start([this](Transport& link) { return order(link, Order::Kind::end); }));
  return ranks_.world.wait_all();
}

}  // namespace dlrun::runtime
