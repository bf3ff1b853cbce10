// See host_communicator.hpp.
#include "runtime/comm/host_communicator.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "runtime/comm/share_memory.hpp"
#include "runtime/comm/transport/group_link.hpp"

namespace dlrun::runtime {
namespace {

// The MPI's own allreduce is over all ranks of its world.
AllreduceChoice choice_of_group(const AllreduceChoice& of_world) {
  return of_world.is("mpi") ? AllreduceChoice{} : of_world;
}

}  // namespace

class HostCommunicator::Group final : public HostCommunicator {
 public:
  Group(const World& world, const std::vector<int>& members, const AllreduceChoice& choice)
      : communicator_(world.communicator),
        ranks_(members),
        link_(world.link, ranks_),
        collectives_(link_, world.thread, choice, {}) {
    use(collectives_, world, members);
  }

  std::string description() const override {
    return fmt::format("{} of {} ranks: {}", size(), communicator_.size(), communicator_.description());
  }
  void give_up() override { communicator_.give_up(); }
  [[noreturn]] void abort(int code) override {
    communicator_.abort(code);
    std::_Exit(code);
  }
  Result<void> finish() override { return barrier(); }

 private:
  Communicator& communicator_;
  std::vector<int> ranks_;
  GroupLink link_;
  HostCollectives collectives_;
};

void HostCommunicator::use(HostCollectives& collectives, const World& world, std::vector<int> members) {
  collectives_ = &collectives;
  world_.emplace(world);
  members_ = std::move(members);
}

std::vector<int> HostCommunicator::whole_world(int ranks) {
  std::vector<int> out(static_cast<std::size_t>(ranks));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

Result<void> HostCommunicator::sum_by_nodes(std::vector<std::uint64_t> node_of,
                                            SharedMemoryAllreduce::Lost lost) {
  if (!collectives_->suits_nodes()) return {};
  node_of_ = std::move(node_of);
  lost_ = std::move(lost);
  return collectives_->choice().is_auto() ? Result<void>{} : make_node_sums();
}

Result<void> HostCommunicator::make_node_sums() {
  const std::vector<std::uint64_t> node_of = std::exchange(node_of_, {});
  if (node_of.empty()) return {};
  auto groups = node_groups_of(node_of, rank(), collectives_->choice().asked_by);
  if (!groups && !collectives_->choice().is_auto()) return tl::unexpected(std::move(groups).error());
  if (!groups || groups->inside.size() == 1 || groups->across.size() == 1) return {};
  const auto node = TRY(split(groups->inside.front(), rank()));
  auto memory = TRY(share_memory(*this, *node, SharedMemoryAllreduce::bytes(node->size())));
  if (memory)
    collectives_->sum_by_nodes(
        std::make_unique<NodeSums>(world_->link, std::move(*groups), std::move(*memory), lost_));
  else if (!collectives_->choice().is_auto())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = collectives_->choice().text() + ", but the ranks of a node cannot share memory",
                      .hint = "set it to auto, or start the ranks of a node in one container"});
  return {};
}

std::string HostCommunicator::nodes_text() const {
  const NodeSums* const sums = collectives_->node_sums();
  return sums == nullptr || collectives_->choice().is_auto()
             ? std::string()
             : fmt::format(", sums inside nodes first ({} nodes of {} ranks)", sums->nodes(),
                           sums->ranks_per_node());
}

Result<std::unique_ptr<Communicator>> HostCommunicator::split(int color, int key) {
  struct Request {
    int color, key;
  };
  const Request mine{color, key};
  std::vector<Request> all(static_cast<std::size_t>(size()));
  TRY(allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  std::vector<int> ranks = whole_world(size());
  const auto request_of = [&](int rank) { return all[static_cast<std::size_t>(rank)]; };
  std::erase_if(ranks, [&](int rank) { return request_of(rank).color != color; });
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](int left, int right) { return request_of(left).key < request_of(right).key; });
  for (int& rank : ranks) rank = members_[static_cast<std::size_t>(rank)];
  return std::make_unique<Group>(*world_, ranks, choice_of_group(collectives_->choice()));
}

}  // namespace dlrun::runtime
