// See hierarchical_allreduce.hpp.
#include "runtime/comm/allreduce/hierarchical.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "runtime/comm/nccl/ranks.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kShareFloats = std::size_t{4} << 20;  // of a share: 16 MiB of pinned memory

// What crosses between nodes, and how that failed, once it has. Shared by the caller's thread and the one of
// the driver's that makes the crossings.
class Border {
 public:
  Border(Communicator& world, std::vector<int> across, Wire wire)
      : world_(world), across_(std::move(across)), wire_(wire) {}

  void cross(std::span<float> numbers) {
    if (failure()) return;
    Result<void> done = world_.group_sum(across_, numbers, wire_);
    const std::lock_guard lock(mutex_);
    if (!done && !failure_) failure_ = std::move(done).error();
  }
  // What crosses, now or later, ends.
  void close() { world_.give_up(); }
  std::optional<Error> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  Communicator& world_;
  std::vector<int> across_;
  Wire wire_;
  mutable std::mutex mutex_;
  std::optional<Error> failure_;
};

// What a call of the host is about; a graph calls it again and again.
struct Crossing {
  Border* border;
  std::span<float> numbers;
  static void run(void* context) {
    const Crossing& self = *static_cast<const Crossing*>(context);
    self.border->cross(self.numbers);
  }
};

class HierarchicalSum final : public DeviceAllreduce {
 public:
  HierarchicalSum(std::unique_ptr<NcclRanks> node, const std::shared_ptr<DeviceCalls>& calls,
                  Communicator& world, Wire wire, const NodePlace& place)
      : node_(std::move(node)),
        calls_(calls),
        border_(world, place.across, wire),
        ranks_(place.inside.size()),
        own_(static_cast<std::size_t>(std::find(place.inside.begin(), place.inside.end(), world.rank()) -
                                      place.inside.begin())),
        staging_(calls, DeviceCalls::Place::pinned) {}

  Result<void> sum(float* data, std::size_t count, void* stream) override {
    TRY(node_->state());
    const std::size_t most = kShareFloats * ranks_;
    for (std::size_t at = 0; at < count; at += most)
      TRY(sum_piece(data + at, std::min(most, count - at), stream));
    return {};
  }

  Result<void> check() override {
    TRY(node_->state());
    const std::optional<Error> failure = border_.failure();
    Result<void> state = failure ? node_->give_up_for(*failure) : node_->check();
    if (!state) border_.close();
    return state;
  }

 private:
  // A rest that has no share a rank is summed by all of the node, and crosses with the share of each of them:
  // equal terms in an equal order, so the same bits.
  Result<void> sum_piece(float* data, std::size_t count, void* stream) {
    const std::size_t share = count / ranks_, rest = count % ranks_;
    float* const own = data + own_ * share;
    float* const last = data + ranks_ * share;
    TRY(sum_in_node(data, share, rest, stream));
    auto* const staged = static_cast<float*>(TRY(staging_.at_least((share + rest) * sizeof(float))));
    if (share > 0) TRY(calls_->copy(staged, own, share * sizeof(float), stream));
    if (rest > 0) TRY(calls_->copy(staged + share, last, rest * sizeof(float), stream));
    TRY(calls_->call_host(Crossing::run, &crossing({staged, share + rest}), stream));
    if (rest > 0) TRY(calls_->copy(last, staged + share, rest * sizeof(float), stream));
    if (share == 0) return {};
    TRY(calls_->copy(own, staged, share * sizeof(float), stream));
    return node_->nccl().gather(own, data, share * sizeof(float), node_->comm(), stream);
  }

  Result<void> sum_in_node(float* data, std::size_t share, std::size_t rest, void* stream) {
    const NcclLibrary& nccl = node_->nccl();
    return nccl.together([&]() -> Result<void> {
      if (share > 0) TRY(nccl.scatter_sums(data, data + own_ * share, share, node_->comm(), stream));
      if (rest > 0) TRY(nccl.sum_floats(data + ranks_ * share, rest, node_->comm(), stream));
      return {};
    });
  }

  Crossing& crossing(std::span<float> numbers) {
    std::unique_ptr<Crossing>& known = crossings_[{numbers.data(), numbers.size()}];
    if (!known) known = std::make_unique<Crossing>(Crossing{&border_, numbers});
    return *known;
  }

  std::unique_ptr<NcclRanks> node_;
  std::shared_ptr<DeviceCalls> calls_;
  Border border_;
  std::size_t ranks_, own_;  // of this node; this rank's number among them
  DeviceBuffer staging_;
  std::map<std::pair<float*, std::size_t>, std::unique_ptr<Crossing>> crossings_;
};

}  // namespace

Result<NamedAllreduce> make_hierarchical_sum(Communicator& world, const std::shared_ptr<DeviceCalls>& calls,
                                             Wire wire, const NodePlace& place,
                                             const std::filesystem::path& library) {
  auto node = TRY(NcclRanks::connect(world, place.inside, library));
  const std::string description = fmt::format(
      "{} inside nodes and by {} between them ({} nodes of {})", node->name(),
      wire == Wire::f32 ? world.description() : fmt::format("{} as {}", world.description(), name_of(wire)),
      place.across.size(), place.inside.size());
  return NamedAllreduce{std::make_unique<HierarchicalSum>(std::move(node), calls, world, wire, place),
                        description};
}

}  // namespace dlrun::runtime
