#include "runtime/comm/transport/shared_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "runtime/comm/transport/spin_backoff.hpp"

namespace dlrun::runtime {

namespace {

// Per piece: large enough that two barriers of the ranks cost little, small enough that the slots of a few
// ranks stay in their caches. Measured nearly flat from 128 kB to 1 MB.
constexpr std::size_t shared_floats = 64 * 1024;
constexpr std::size_t block_floats = 1024;  // a few of these fit the first cache
constexpr int spins_before_yield = 2000;
constexpr int spins_before_probe = 32 * 1024;  // about a second, and then each two: a launcher is faster

void add(float* to, const float* a, const float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

}  // namespace

// One rank's flags, each alone in its cache line. Zeroed memory is a valid state of them.
struct SharedMemoryAllreduce::Flags {
  alignas(64) std::atomic<std::uint64_t> staged;
  alignas(64) std::atomic<std::uint64_t> summed;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "flags are shared between processes");

std::size_t SharedMemoryAllreduce::bytes(int ranks) {
  return static_cast<std::size_t>(ranks) * (sizeof(Flags) + 2 * shared_floats * sizeof(float)) + 64;
}

SharedMemoryAllreduce::SharedMemoryAllreduce(void* memory, int rank, int ranks) : rank_(rank), ranks_(ranks) {
  std::size_t space = bytes(ranks);
  flags_ = static_cast<Flags*>(std::align(alignof(Flags), bytes(ranks) - alignof(Flags), memory, space));
  slots_ = reinterpret_cast<std::byte*>(flags_ + ranks);
}

// Two slots per rank, used in turn: whoever has seen all ranks stage piece n knows that all have read their
// results of piece n - 1, so the slots of n - 1 are free again for n + 1.
std::byte* SharedMemoryAllreduce::slot(int rank, CommDtype dtype, std::size_t at) const {
  const std::size_t index = (turn_ % 2) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank);
  return slots_ + index * shared_floats * sizeof(float) + bytes_of(dtype, at);
}

// A rank that comes and goes has come: its flag is read once more.
void SharedMemoryAllreduce::await(const std::atomic<std::uint64_t>& flag, int rank) {
  for (int spins = 1; !failure_ && flag.load(std::memory_order_acquire) < turn_; ++spins) {
#if defined(__x86_64__)
    if (spins < spins_before_yield) __builtin_ia32_pause();
#elif defined(__aarch64__)
    if (spins < spins_before_yield) __asm__ volatile("yield");
#endif
    spin_backoff(spins, spins_before_yield);
    if (spins < spins_before_probe) continue;
    auto lost = lost_ ? lost_(rank) : std::nullopt;
    if (lost && flag.load(std::memory_order_acquire) < turn_) failure_ = std::move(lost);
    spins = spins_before_yield;
  }
}

void SharedMemoryAllreduce::post_staged() {
  flags_[rank_].staged.store(turn_, std::memory_order_release);
}

void SharedMemoryAllreduce::post_summed() {
  flags_[rank_].summed.store(turn_, std::memory_order_release);
}

void SharedMemoryAllreduce::await_staged() {
  for (int r = 0; r < ranks_; ++r) await(flags_[r].staged, r);
}

void SharedMemoryAllreduce::await_summed() {
  for (int r = 0; r < ranks_; ++r) await(flags_[r].summed, r);
}

// In the order of the ranks, a block at a time so that each array is read from memory once.
void SharedMemoryAllreduce::sum_share(std::span<float> data, Part share) {
  const auto term = [&](int r) {
    return r == rank_ ? data.data() : reinterpret_cast<const float*>(slot(r, CommDtype::f32, 0));
  };
  auto* result = reinterpret_cast<float*>(slot(rank_, CommDtype::f32, 0));
  for (std::size_t at = share.begin; at < share.end; at += block_floats) {
    const std::size_t length = std::min(block_floats, share.end - at);
    add(result + at, term(0) + at, term(1) + at, length);
    for (int r = 2; r < ranks_; ++r) add(result + at, result + at, term(r) + at, length);
    std::memcpy(data.data() + at, result + at, length * sizeof(float));
  }
}

// The same where the others' numbers lie packed, and the sum is to be packed.
void SharedMemoryAllreduce::sum_packed_share(std::span<float> data, CommDtype dtype, Part share) {
  float block[block_floats];
  for (std::size_t at = share.begin; at < share.end; at += block_floats) {
    const std::size_t length = std::min(block_floats, share.end - at);
    const float* own = data.data() + at;
    if (rank_ == 0)
      std::memcpy(block, own, length * sizeof(float));
    else
      unpack(dtype, block, slot(0, dtype, at), length);
    for (int r = 1; r < ranks_; ++r)
      if (r == rank_)
        add(block, block, own, length);
      else
        add_unpacked(dtype, block, slot(r, dtype, at), length);
    pack(dtype, slot(rank_, dtype, at), block, length);
    unpack(dtype, data.data() + at, slot(rank_, dtype, at), length);
  }
}

void SharedMemoryAllreduce::sum_piece(std::span<float> data, CommDtype dtype) {
  ++turn_;
  for (int r = 0; r < ranks_; ++r) {
    const Part share = part_of(data.size(), r, ranks_);
    if (r != rank_) pack(dtype, slot(rank_, dtype, share.begin), data.data() + share.begin, share.length());
  }
  post_staged();
  await_staged();
  const Part own = part_of(data.size(), rank_, ranks_);
  if (dtype == CommDtype::f32)
    sum_share(data, own);
  else
    sum_packed_share(data, dtype, own);
  post_summed();
  await_summed();
  for (int r = 0; r < ranks_; ++r) {
    const Part share = part_of(data.size(), r, ranks_);
    if (r != rank_) unpack(dtype, data.data() + share.begin, slot(r, dtype, share.begin), share.length());
  }
}

// Number `number` of all terms, from where the piece begins: the others' as they have staged them.
const float* SharedMemoryAllreduce::staged_term(const TreePlan& plan, std::size_t number,
                                                std::size_t space) const {
  int rank = 0;
  while (plan.first[static_cast<std::size_t>(rank) + 1] <= number) ++rank;
  const std::size_t behind = number - plan.first[static_cast<std::size_t>(rank)];
  return reinterpret_cast<const float*>(slot(rank, CommDtype::f32, behind * space));
}

// A rank's slot has its terms one behind the other.
void SharedMemoryAllreduce::stage(const TreeTerms& data, std::size_t space) {
  for (std::size_t term = 0; term < data.terms.size(); ++term)
    for (int r = 0; r < ranks_; ++r) {
      const Part share = part_of(data.sum.size(), r, ranks_);
      if (r != rank_ && share.length() > 0)
        std::memcpy(slot(rank_, CommDtype::f32, term * space + share.begin), data.terms[term] + share.begin,
                    share.length() * sizeof(float));
    }
}

// Into the slot's first part, where this rank has staged nothing.
void SharedMemoryAllreduce::sum_own_share(const TreeTerms& data, std::size_t space) {
  const Part own = part_of(data.sum.size(), rank_, ranks_);
  const std::size_t mine = data.plan->first[static_cast<std::size_t>(rank_)];
  std::vector<const float*> terms;
  for (std::size_t number = 0; number < data.plan->terms(); ++number) {
    const bool is_own = number >= mine && number < mine + data.terms.size();
    terms.push_back((is_own ? data.terms[number - mine] : staged_term(*data.plan, number, space)) +
                    own.begin);
  }
  auto* const sum = reinterpret_cast<float*>(slot(rank_, CommDtype::f32, own.begin));
  add_in_tree(*data.plan, terms, sum, own.length());
}

void SharedMemoryAllreduce::sum_tree_piece(const TreeTerms& data, std::size_t space) {
  ++turn_;
  stage(data, space);
  post_staged();
  await_staged();
  sum_own_share(data, space);
  post_summed();
  await_summed();
  for (int r = 0; r < ranks_; ++r) {
    const Part share = part_of(data.sum.size(), r, ranks_);
    unpack(CommDtype::f32, data.sum.data() + share.begin, slot(r, CommDtype::f32, share.begin),
           share.length());
  }
}

// Pieces are so short that a slot has all terms of any rank.
void SharedMemoryAllreduce::allreduce(const TreeTerms& data) {
  const std::size_t space =
      std::max(shared_floats / data.plan->most_terms() / line_floats, std::size_t{1}) * line_floats;
  for (std::size_t at = 0; at < data.sum.size(); at += space)
    sum_tree_piece(piece_of(data, at, space), space);
}

// This rank's terms are `data`; those of the others are at `place` of their slots. A block at a time.
void SharedMemoryAllreduce::sum_in_order(float* data, CommDtype dtype, std::size_t place, std::size_t count) {
  float block[block_floats];
  for (std::size_t at = 0; at < count; at += block_floats) {
    const std::size_t length = std::min(block_floats, count - at);
    if (rank_ == 0)
      std::memcpy(block, data + at, length * sizeof(float));
    else
      unpack(dtype, block, slot(0, dtype, place + at), length);
    for (int r = 1; r < ranks_; ++r)
      if (r == rank_)
        add(block, block, data + at, length);
      else
        add_unpacked(dtype, block, slot(r, dtype, place + at), length);
    std::memcpy(data + at, block, length * sizeof(float));
  }
}

// A piece has numbers of every part, so that all ranks add. Whoever has seen all ranks stage piece n knows
// that all have added piece n - 1: its slots are free again.
void SharedMemoryAllreduce::reduce_scatter(std::span<float> data, const Borders& borders, CommDtype dtype) {
  const std::size_t space = shared_floats / static_cast<std::size_t>(ranks_) / line_floats * line_floats;
  const auto place = [&](int rank) { return static_cast<std::size_t>(rank) * space; };
  const std::size_t longest = longest_part(borders);
  for (std::size_t at = 0; at < longest; at += space) {
    ++turn_;
    for (int r = 0; r < ranks_; ++r) {
      const Part piece = piece_of_part(part_between(borders, r), at, space);
      if (r != rank_) pack(dtype, slot(rank_, dtype, place(r)), data.data() + piece.begin, piece.length());
    }
    post_staged();
    await_staged();
    const Part own = piece_of_part(part_between(borders, rank_), at, space);
    sum_in_order(data.data() + own.begin, dtype, place(rank_), own.length());
  }
}

void SharedMemoryAllreduce::allgather(std::span<float> data, const Borders& borders) {
  const std::size_t longest = longest_part(borders);
  for (std::size_t at = 0; at < longest; at += shared_floats) {
    ++turn_;
    const auto piece = [&](int rank) {
      return piece_of_part(part_between(borders, rank), at, shared_floats);
    };
    const Part own = piece(rank_);
    pack(CommDtype::f32, slot(rank_, CommDtype::f32, 0), data.data() + own.begin, own.length());
    post_staged();
    await_staged();
    for (int r = 0; r < ranks_; ++r)
      if (const Part theirs = piece(r); r != rank_)
        unpack(CommDtype::f32, data.data() + theirs.begin, slot(r, CommDtype::f32, 0), theirs.length());
  }
}

// A piece without numbers: it takes a turn, so that the slots of the piece before it are known to be read.
void SharedMemoryAllreduce::barrier() {
  ++turn_;
  post_staged();
  await_staged();
}

void SharedMemoryAllreduce::allreduce(std::span<float> data, CommDtype dtype) {
  while (!data.empty()) {
    const std::size_t length = std::min(data.size(), shared_floats);
    sum_piece(data.first(length), dtype);
    data = data.subspan(length);
  }
}

}  // namespace dlrun::runtime
