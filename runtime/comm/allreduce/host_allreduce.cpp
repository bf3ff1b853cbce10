// See host_sums.hpp.
#include "runtime/comm/allreduce/host_allreduce.hpp"

#include "runtime/comm/transport/group_link.hpp"

namespace dlrun::runtime {

// Through shared memory the processors move the numbers themselves, so nothing is gained by starting early,
// and one meeting of the ranks a step costs less than one a bucket: such sums are only noted here.
Result<void> HostAllreduce::start(std::span<float> data, Wire wire) {
  if (link_.size() == 1) return {};
  if (wire != Wire::f32 && allreduce_ != Allreduce::automatic)
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("DLRUN_ALLREDUCE names a sum that sends f32, and the job asks "
                                          "for {}",
                                          name_of(wire)),
                      .hint = "leave DLRUN_ALLREDUCE out"});
  if (shared_)
    noted_.push_back({data, wire});
  else
    thread_.post([this, data, wire] { return sum(data, wire); });
  return {};
}

Result<void> HostAllreduce::start_served(std::span<const ServedPiece> pieces) {
  if (link_.size() == 1) return {};
  thread_.post([this, all = std::vector<ServedPiece>(pieces.begin(), pieces.end())] {
    return parameter_server_allreduce(link_, all, scratch_);
  });
  return {};
}

Result<void> HostAllreduce::wait_all() {
  TRY(thread_.wait());
  for (const Noted& sum : noted_) shared_->sum(sum.data, sum.wire);
  noted_.clear();
  return {};
}

// By messages also where all ranks share memory: groups are for what lies between nodes.
Result<void> HostAllreduce::group_sum(std::span<const int> group, std::span<float> data, Wire wire) {
  return thread_.run([=, this] {
    GroupLink link(link_, group);
    return sum_over(link, data, wire, scratch_);
  });
}

// By flags where there are some: through the thread, ranks would leave it apart by what its wake-ups take.
Result<void> HostAllreduce::barrier() {
  if (!shared_) return thread_.run([this] { return meet(link_); });
  TRY(thread_.wait());
  shared_->meet();
  return {};
}

Result<void> HostAllreduce::sum(std::span<float> data, Wire wire) {
  switch (allreduce_) {
    case Allreduce::mpi:
      return library_sum_(data);
    case Allreduce::ring:
      return ring_allreduce(link_, data, scratch_);
    case Allreduce::halving:
      return recursive_halving_doubling(link_, data, scratch_);
    case Allreduce::automatic:
    case Allreduce::hierarchical:
      break;
  }
  return sum_over(link_, data, wire, scratch_);
}

}  // namespace dlrun::runtime
