// Recursive halving, then doubling (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
// Communication Operations in MPICH", 2005): ranks exchange half of what they are responsible for with one at
// half the distance, until each has the sum of one shard; the way back distributes the shards. 2 log2(n)
// messages per rank: for small arrays. Where the ranks are no power of two, some first send their array to a
// neighbour and get the sum from it at the end. Order of addition: with n a power of two a shard's sum is a
// balanced tree over the ranks, at each level x[own half] + x[other half]; a neighbour's array is added to
// its partner's first.
#include <bit>

#include "runtime/comm/allreduce/algorithms.hpp"
#include "runtime/comm/allreduce/partition.hpp"

namespace dlrun::runtime {
namespace {

class RecursiveHalvingDoubling {
 public:
  RecursiveHalvingDoubling(Transport& link, std::span<float> data, Scratch& scratch)
      : link_(link),
        data_(data),
        received_(scratch.floats(data.size()), data.size()),
        group_(static_cast<int>(std::bit_floor(static_cast<unsigned>(link.size())))),
        pairs_(link.size() - group_) {}

  Result<void> run() {
    const bool paired = link_.rank() < 2 * pairs_;
    const bool sends_all = paired && link_.rank() % 2 == 0;
    const int neighbour = sends_all ? link_.rank() + 1 : link_.rank() - 1;
    if (sends_all) {
      TRY(send(data_, neighbour));
      return receive(data_, neighbour);
    }
    if (paired) {
      TRY(receive(received_, neighbour));
      add(data_);
    }
    TRY(in_group(paired ? link_.rank() / 2 : link_.rank() - pairs_));
    return paired ? send(data_, neighbour) : Result<void>{};
  }

 private:
  // Parts [first, first + count) of the group_ shards.
  std::span<float> parts(int first, int count) const {
    const std::size_t begin = part_of(data_.size(), first, group_).begin;
    return data_.subspan(begin, part_of(data_.size(), first + count - 1, group_).end - begin);
  }
  int rank_of(int member) const { return member < pairs_ ? 2 * member + 1 : member + pairs_; }

  Result<void> in_group(int me) {
    int first = 0;
    for (int half = group_ / 2; half > 0; half /= 2) {
      const int mine = (me & half) != 0 ? first + half : first;
      const std::span<float> kept = parts(mine, half);
      const std::span<float> given = parts(mine == first ? first + half : first, half);
      TRY(swap(given, received_.first(kept.size()), rank_of(me ^ half)));
      add(kept);
      first = mine;
    }
    for (int half = 1; half < group_; half *= 2) {
      const int theirs = (me & half) != 0 ? first - half : first + half;
      TRY(swap(parts(first, half), parts(theirs, half), rank_of(me ^ half)));
      first = std::min(first, theirs);
    }
    return {};
  }

  void add(std::span<float> sum) {
    add_unpacked(CommDtype::f32, sum.data(), reinterpret_cast<const std::byte*>(received_.data()),
                 sum.size());
  }
  Result<void> send(std::span<const float> data, int to) {
    return link_.wait(TRY(link_.send_start(std::as_bytes(data), to)));
  }
  Result<void> receive(std::span<float> data, int from) {
    return link_.wait(TRY(link_.receive_start(std::as_writable_bytes(data), from)));
  }
  Result<void> swap(std::span<const float> out, std::span<float> in, int with) {
    const Transport::Ticket arriving = TRY(link_.receive_start(std::as_writable_bytes(in), with));
    const Transport::Ticket leaving = TRY(link_.send_start(std::as_bytes(out), with));
    TRY(link_.wait(arriving));
    return link_.wait(leaving);
  }

  Transport& link_;
  std::span<float> data_, received_;
  int group_;  // the power of two that take part in the halving
  int pairs_;  // ranks beyond it, each sent to a neighbour
};

}  // namespace

Result<void> recursive_halving_doubling(Transport& link, std::span<float> data, CommDtype, Scratch& scratch) {
  return RecursiveHalvingDoubling(link, data, scratch).run();
}

}  // namespace dlrun::runtime
