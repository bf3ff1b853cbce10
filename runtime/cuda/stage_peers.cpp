// See stage_peers.hpp.
#include "runtime/cuda/stage_peers.hpp"

#include <algorithm>

namespace dlrun::runtime {
namespace {

constexpr std::size_t kFirstMessage = 64;  // bytes

}  // namespace

Result<std::unique_ptr<StagePeers>> StagePeers::connect(Parts parts) {
  std::unique_ptr<StagePeers> out(new StagePeers(std::move(parts)));
  TRY(out->connect_partners());
  return out;
}

// Whom this stage has messages for.
std::vector<int> StagePeers::partners() const {
  std::vector<int> out;
  if (!is_first()) out.push_back(before());
  if (!is_last()) out.push_back(behind());
  const bool knows_other_end = std::find(out.begin(), out.end(), other_end()) != out.end();
  if (!parts_.tied.empty() && !knows_other_end) out.push_back(other_end());
  return out;
}

Result<void> StagePeers::connect_partners() {
  const std::vector<int> others = partners();
  const auto stages = static_cast<std::size_t>(parts_.pipeline->stages());
  std::size_t bytes = kFirstMessage * (1 + std::max(others.size(), stages));
  for (const Bucket& slice : parts_.tied) bytes = std::max(bytes, slice.length * sizeof(float));
  auto* const own = static_cast<std::byte*>(TRY(room_.at_least(bytes)));
  TRY(parts_.pipeline->together([&]() -> Result<void> {
    for (std::size_t i = 0; i < others.size(); ++i) {
      TRY(parts_.pipeline->send(own, kFirstMessage, others[i], nullptr));
      TRY(parts_.pipeline->receive(own + kFirstMessage * (1 + i), kFirstMessage, others[i], nullptr));
    }
    return {};
  }));
  return parts_.pipeline->exchange(own, own + kFirstMessage, kFirstMessage, nullptr);
}

Result<void> StagePeers::receive_values(void* values, std::size_t bytes, void* stream) {
  TRY(parts_.pipeline->receive(values, bytes, before(), stream));
  parts_.turns.values_came();
  if (!waiting_) return {};
  const Waiting gradient = *std::exchange(waiting_, std::nullopt);
  return parts_.pipeline->send(gradient.data, gradient.bytes, before(), stream);
}

Result<void> StagePeers::send_gradients(const void* gradients, std::size_t bytes, void* stream) {
  if (!parts_.turns.gradient_waits()) return parts_.pipeline->send(gradients, bytes, before(), stream);
  waiting_ = Waiting{gradients, bytes};
  return {};
}

Result<void> StagePeers::send_tied(const float* gradients, void* stream) {
  for (const Bucket& slice : parts_.tied)
    TRY(parts_.pipeline->send(gradients + slice.offset, slice.length * sizeof(float), other_end(), stream));
  return {};
}

Result<void> StagePeers::add_tied(float* gradients, void* stream) {
  for (const Bucket& slice : parts_.tied) {
    auto* const received = static_cast<float*>(TRY(room_.at_least(slice.length * sizeof(float))));
    TRY(parts_.pipeline->receive(received, slice.length * sizeof(float), other_end(), stream));
    float* const own = gradients + slice.offset;
    TRY(parts_.calls->add(own, own, received, slice.length, stream));
  }
  return {};
}

Result<void> StagePeers::take_tied(float* gradients, void* stream) {
  for (const Bucket& slice : parts_.tied)
    TRY(parts_.pipeline->receive(gradients + slice.offset, slice.length * sizeof(float), other_end(),
                                 stream));
  return {};
}

Result<void> StagePeers::finish(float* gradients, void* stream) {
  TRY(is_first() ? add_tied(gradients, stream) : send_tied(gradients, stream));
  TRY(parts_.sum_waiting(gradients, stream));
  return is_first() ? send_tied(gradients, stream) : take_tied(gradients, stream);
}

DlrunCudaStageCalls StagePeers::calls() {
  static constexpr auto self = [](void* context) -> StagePeers& {
    return *static_cast<StagePeers*>(context);
  };
  DlrunCudaStageCalls out{};
  out.context = this;
  out.stages = static_cast<std::size_t>(parts_.pipeline->stages());
  out.receive_values = [](void* context, void* values, std::size_t bytes, void* stream) {
    return self(context).parts_.keep(self(context).receive_values(values, bytes, stream));
  };
  out.send_gradients = [](void* context, const void* gradients, std::size_t bytes, void* stream) {
    return self(context).parts_.keep(self(context).send_gradients(gradients, bytes, stream));
  };
  out.send_values = [](void* context, const void* values, std::size_t bytes, void* stream) {
    StagePeers& stage = self(context);
    return stage.parts_.keep(stage.parts_.pipeline->send(values, bytes, stage.behind(), stream));
  };
  out.receive_gradients = [](void* context, void* gradients, std::size_t bytes, void* stream) {
    StagePeers& stage = self(context);
    return stage.parts_.keep(stage.parts_.pipeline->receive(gradients, bytes, stage.behind(), stream));
  };
  out.finish = [](void* context, float* gradients, void* stream) {
    return self(context).parts_.keep(self(context).finish(gradients, stream));
  };
  out.exchange = [](void* context, const void* mine, void* all, std::size_t bytes, void* stream) {
    StagePeers& stage = self(context);
    return stage.parts_.keep(stage.parts_.pipeline->exchange(mine, all, bytes, stream));
  };
  return out;
}

}  // namespace dlrun::runtime
