// An allreduce among GPUs in three parts: NCCL's reduce-scatter inside each node leaves every GPU a shard;
// the shards cross between the nodes through the world's own Communicator, an MPI as a rule, each in the
// process group of the ranks of one number in their nodes; NCCL's allgather brings the sums to all GPUs of a
// node. For networks that the MPI reaches and NCCL does not, or not as fast. All of it is work on the stream:
// the crossing is a call of the host in its place, which waits for the messages. Inside nodes numbers are
// f32, between them they have the job's dtype.
#include <algorithm>
#include <map>
#include <mutex>

#include "runtime/comm/allreduce/algorithms.hpp"
#include "runtime/comm/allreduce/choose_device_allreduce.hpp"
#include "runtime/comm/allreduce/nodes.hpp"
#include "runtime/comm/nccl/communicator.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kShardFloats = std::size_t{4} << 20;  // of a shard: 16 MiB of pinned memory

// What crosses between nodes, and how that failed, once it has. Shared by the caller's thread and the one of
// the driver's that makes the crossings.
class Border {
 public:
  Border(std::unique_ptr<Communicator> across, CommDtype dtype) : across_(std::move(across)), dtype_(dtype) {}

  void cross(std::span<float> numbers) {
    if (failure()) return;
    Result<void> done = across_->allreduce(numbers, dtype_);
    const std::lock_guard lock(mutex_);
    if (!done && !failure_) failure_ = std::move(done).error();
  }
  CommDtype dtype() const { return dtype_; }
  // What crosses, now or later, ends.
  void close() { across_->give_up(); }
  std::optional<Error> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  std::unique_ptr<Communicator> across_;
  CommDtype dtype_;
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

class HierarchicalAllreduce final : public DeviceAllreduce {
 public:
  // `inside`: the hosts of this rank's node, which NCCL connects; `across`: of every node one.
  HierarchicalAllreduce(std::unique_ptr<Communicator> inside, std::unique_ptr<NcclCommunicator> node,
                        const std::shared_ptr<DeviceCalls>& calls, std::unique_ptr<Communicator> across,
                        CommDtype dtype)
      : inside_(std::move(inside)),
        node_(std::move(node)),
        calls_(calls),
        border_(std::move(across), dtype),
        ranks_(static_cast<std::size_t>(node_->size())),
        own_(static_cast<std::size_t>(node_->rank())),
        staging_(calls, DeviceCalls::Place::pinned) {}

  Result<void> sum(float* data, std::size_t count, void* stream) override {
    TRY(node_->state());
    const std::size_t maximum = kShardFloats * ranks_;
    for (std::size_t at = 0; at < count; at += maximum)
      TRY(sum_piece(data + at, std::min(maximum, count - at), stream));
    return {};
  }

  bool is_exact() const override { return border_.dtype() == CommDtype::f32; }

  Result<void> check() override {
    TRY(node_->state());
    const std::optional<Error> failure = border_.failure();
    Result<void> state = failure ? node_->give_up_for(*failure) : node_->check();
    if (!state) border_.close();
    return state;
  }

 private:
  // A rest that is no shard is summed by all of the node, and crosses with the shard of each of them:
  // equal terms in an equal order, so the same bits.
  Result<void> sum_piece(float* data, std::size_t count, void* stream) {
    const std::size_t shard = count / ranks_, rest = count % ranks_;
    float* const own = data + own_ * shard;
    float* const last = data + ranks_ * shard;
    TRY(sum_in_node(data, shard, rest, stream));
    auto* const staged = static_cast<float*>(TRY(staging_.at_least((shard + rest) * sizeof(float))));
    if (shard > 0) TRY(calls_->copy(staged, own, shard * sizeof(float), stream));
    if (rest > 0) TRY(calls_->copy(staged + shard, last, rest * sizeof(float), stream));
    TRY(calls_->call_host(Crossing::run, &crossing({staged, shard + rest}), stream));
    if (rest > 0) TRY(calls_->copy(last, staged + shard, rest * sizeof(float), stream));
    if (shard == 0) return {};
    TRY(calls_->copy(own, staged, shard * sizeof(float), stream));
    return node_->allgather(own, data, shard * sizeof(float), stream);
  }

  Result<void> sum_in_node(float* data, std::size_t shard, std::size_t rest, void* stream) {
    return node_->together([&]() -> Result<void> {
      if (shard > 0) TRY(node_->reduce_scatter(data, data + own_ * shard, shard, stream));
      if (rest > 0) TRY(node_->allreduce(data + ranks_ * shard, rest, stream));
      return {};
    });
  }

  Crossing& crossing(std::span<float> numbers) {
    std::unique_ptr<Crossing>& known = crossings_[{numbers.data(), numbers.size()}];
    if (!known) known = std::make_unique<Crossing>(Crossing{&border_, numbers});
    return *known;
  }

  std::unique_ptr<Communicator> inside_;
  std::unique_ptr<NcclCommunicator> node_;
  std::shared_ptr<DeviceCalls> calls_;
  Border border_;
  std::size_t ranks_, own_;  // of this node; this rank's number among them
  DeviceBuffer staging_;
  std::map<std::pair<float*, std::size_t>, std::unique_ptr<Crossing>> crossings_;
};

std::string across_text(const DeviceWorld& world) {
  const std::string description = world.world.description();
  return world.dtype == CommDtype::f32 ? description
                                       : fmt::format("{} as {}", description, name_of(world.dtype));
}

}  // namespace

AllreduceAlgorithm::Make make_hierarchical_allreduce;
Result<NamedAllreduce> make_hierarchical_allreduce(const DeviceWorld& world) {
  Communicator& all = world.world;
  const NodeGroups groups = TRY(node_groups_of(TRY(gather_nodes(all, world.environment)), all.rank(),
                                               TRY(choose_allreduce(world.environment, {})).asked_by));
  if (groups.across.size() == 1) {
    NamedAllreduce alone = TRY(make_allreduce_by_nccl(world));
    alone.description += " alone, as all ranks are on one node";
    return alone;
  }
  auto inside = TRY(all.split(groups.inside.front(), all.rank()));
  auto across = TRY(all.split(groups.across.front(), all.rank()));
  auto node = TRY(NcclCommunicator::connect(all, *inside, world.library));
  const std::string description =
      fmt::format("{} inside nodes and by {} between them ({} nodes of {})", node->name(), across_text(world),
                  groups.across.size(), groups.inside.size());
  return NamedAllreduce{std::make_unique<HierarchicalAllreduce>(std::move(inside), std::move(node),
                                                                world.calls, std::move(across), world.dtype),
                        description};
}

}  // namespace dlrun::runtime
