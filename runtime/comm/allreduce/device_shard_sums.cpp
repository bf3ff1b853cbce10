// See device_shard_sums.hpp. All that a sum asks of the device depends on the plan alone, so that a graph
// which captured it is right for every step.
#include "runtime/comm/allreduce/device_shard_sums.hpp"

#include <deque>

#include "runtime/comm/allreduce/partition.hpp"
#include "runtime/comm/allreduce/shard_tree.hpp"
#include "runtime/comm/nccl/communicator.hpp"

namespace dlrun::runtime {
namespace {

class DeviceShardSums final : public DeviceAllreduce {
 public:
  DeviceShardSums(std::unique_ptr<NcclCommunicator> nccl, const std::shared_ptr<DeviceCalls>& calls,
                  int terms, const Communicator& world)
      : nccl_(std::move(nccl)),
        calls_(calls),
        rank_(world.rank()),
        ranks_(world.size()),
        own_(ShardTree(terms).reduce(shards_of(terms, rank_, ranks_))),
        plan_(tree_plan(terms, ranks_)),
        received_(calls, DeviceCalls::Place::device) {
    std::size_t depth = 0;
    for (const int additions : own_.additions) {
      depths_.push_back(depth);
      depth = depth + 1 - static_cast<std::size_t>(additions);
    }
  }

  bool is_exact() const override { return true; }
  bool keeps() const override { return true; }

  // The last addition writes where the sum is kept.
  Result<void> keep(std::size_t number, float* data, std::size_t count, void* stream) override {
    if (number + 1 >= own_.additions.size())
      return fail(ErrorKind::internal, "batch {} of a rank that has {}", number, own_.additions.size());
    arena_ = data, floats_ = count;
    std::size_t depth = depths_[number];
    const int additions = own_.additions[number];
    if (additions == 0) return calls_->copy(TRY(kept(depth)), data, count * sizeof(float), stream);
    for (int left = additions; left > 0; --left) {
      const float* const before = TRY(kept(--depth));
      TRY(calls_->add(left == 1 ? TRY(kept(depth)) : data, before, data, count, stream));
    }
    return {};
  }

  Result<void> sum(float* data, std::size_t count, void* stream) override {
    if (nccl_) TRY(nccl_->state());
    std::vector<float*> terms = TRY(kept_terms(data));
    for (int left = own_.additions.back(); left > 0; --left) {
      TRY(calls_->add(data, terms.back(), data, count, stream));
      terms.pop_back();
    }
    terms.push_back(data);
    return ranks_ == 1 ? Result<void>{} : add_over_ranks(terms, data, count, stream);
  }

  Result<void> check() override { return nccl_ ? nccl_->check() : Result<void>{}; }

 private:
  Result<float*> kept(std::size_t number) {
    while (kept_.size() <= number) kept_.emplace_back(calls_, DeviceCalls::Place::device);
    return static_cast<float*>(TRY(kept_[number].at_least(floats_ * sizeof(float))));
  }

  // What keep() has left of the numbers at `data`. Numbers outside of its arena are summed to be timed, and
  // mean nothing.
  Result<std::vector<float*>> kept_terms(const float* data) {
    if (depths_.back() > 0 && arena_ == nullptr)
      return fail(ErrorKind::internal, "a rank's last batch is summed, and none was before it");
    const bool is_in_arena = data >= arena_ && data < arena_ + floats_;
    std::vector<float*> out;
    for (std::size_t number = 0; number < depths_.back(); ++number)
      out.push_back(TRY(kept(number)) + (is_in_arena ? data - arena_ : 0));
    return out;
  }

  Result<void> add_over_ranks(const std::vector<float*>& own, float* data, std::size_t count, void* stream) {
    const Part mine = part_of(count, rank_, ranks_);
    const std::size_t slots = plan_.terms() - own.size(), length = (mine.length() + line_floats - 1);
    const Slots received{static_cast<float*>(TRY(received_.at_least(slots * length * sizeof(float) + 1))),
                         length / line_floats * line_floats, first(rank_), own.size()};
    TRY(nccl_->together([&]() -> Result<void> {
      for (int step = 1; step < ranks_; ++step) {
        for (const float* const term : own) TRY(send(term, part_of(count, to(step), ranks_), step, stream));
        for (std::size_t term = first(from(step)); term < first(from(step) + 1); ++term)
          TRY(receive(received.of(term), {0, mine.length()}, step, stream));
      }
      return {};
    }));
    TRY(add_in_tree(own, received, data, mine, stream));
    return nccl_->together([&]() -> Result<void> {
      for (int step = 1; step < ranks_; ++step) {
        TRY(send(data, mine, step, stream));
        TRY(receive(data, part_of(count, from(step), ranks_), step, stream));
      }
      return {};
    });
  }

  // Where the terms of the others lie, those of one behind those of another.
  struct Slots {
    float* memory;
    std::size_t stride, first_own, own;
    float* of(std::size_t term) const { return memory + (term < first_own ? term : term - own) * stride; }
  };

  // A sum takes the place of its left term, which nobody reads again, and the last one that of the data.
  Result<void> add_in_tree(const std::vector<float*>& own, const Slots& received, float* data, Part mine,
                           void* stream) {
    if (mine.length() == 0) return {};
    std::vector<float*> stack;
    for (std::size_t term = 0; term < plan_.terms(); ++term) {
      const bool is_own = term >= received.first_own && term < received.first_own + own.size();
      stack.push_back(is_own ? own[term - received.first_own] + mine.begin : received.of(term));
      for (int left = plan_.additions[term]; left > 0; --left) {
        const float* const right = stack.back();
        stack.pop_back();
        const bool is_whole = term + 1 == plan_.terms() && left == 1;
        float* const sum = is_whole ? data + mine.begin : stack.back();
        TRY(calls_->add(sum, stack.back(), right, mine.length(), stream));
        stack.back() = sum;
      }
    }
    return {};
  }

  int to(int step) const { return (rank_ + step) % ranks_; }
  int from(int step) const { return (rank_ + ranks_ - step) % ranks_; }
  std::size_t first(int rank) const { return plan_.first[static_cast<std::size_t>(rank)]; }
  Result<void> send(const float* data, Part which, int step, void* stream) {
    if (which.length() == 0) return {};
    return nccl_->send(data + which.begin, which.length() * sizeof(float), to(step), stream);
  }
  Result<void> receive(float* data, Part which, int step, void* stream) {
    if (which.length() == 0) return {};
    return nccl_->receive(data + which.begin, which.length() * sizeof(float), from(step), stream);
  }

  std::unique_ptr<NcclCommunicator> nccl_;  // none: one rank
  std::shared_ptr<DeviceCalls> calls_;
  int rank_, ranks_;
  Reduction own_;  // of the rank's batches
  TreePlan plan_;
  std::vector<std::size_t> depths_;  // of each batch: how many sums are kept before it
  std::deque<DeviceBuffer> kept_;
  DeviceBuffer received_;
  const float* arena_ = nullptr;  // of all gradients, `floats_` of them
  std::size_t floats_ = 0;
};

}  // namespace

Result<NamedAllreduce> make_device_shard_sums(Communicator& world, const std::shared_ptr<DeviceCalls>& calls,
                                              int terms, const std::filesystem::path& library) {
  std::unique_ptr<NcclCommunicator> nccl;
  if (world.size() > 1) nccl = TRY(NcclCommunicator::connect(world, world, library));
  const std::string description = nccl ? nccl->name() + " in the order of the shards" : "the GPU alone";
  return NamedAllreduce{std::make_unique<DeviceShardSums>(std::move(nccl), calls, terms, world), description};
}

}  // namespace dlrun::runtime
