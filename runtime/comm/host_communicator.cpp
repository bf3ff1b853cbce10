// See host_communicator.hpp.
#include "runtime/comm/host_communicator.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

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
