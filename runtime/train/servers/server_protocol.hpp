// What workers and parameter servers that are processes of their own say to each other. Between a worker and
// a server messages have one order: an Order; behind Kind::gradients the parts of the server's slices, in the
// order of the arena, and Numbers; the server answers with an Answer and the same parts of the weights. The
// first worker begins with a ServerSetup. All processes are of one build and one kind of machine, as ranks
// are everywhere: structs travel as they lie.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/comm/transport/transport.hpp"
#include "runtime/optim/optimizer.hpp"

namespace dlrun::runtime {

/// What a server knows of a slice that it has: floats, and how its parameter is updated.
struct SliceFacts {
  std::uint64_t length = 0;
  std::uint32_t frozen = 0, decays = 1, is_vector = 0, unused = 0;
};

/// The first worker's, to each server: behind it come the ranks of those that send gradients (std::int32_t
/// each), the slices' facts, their weights, and each tensor of the optimizer's state.
struct ServerSetup {
  std::uint64_t slices = 0;
  std::uint32_t senders = 0, staleness = 0;
};

struct Order {
  // gradients: of one step. fetch: the weights, once all have finished as many steps. state: the optimizer's,
  // without an Answer before it. end: this worker needs no server any more.
  enum class Kind : std::uint32_t { gradients, fetch, state, end };
  Kind kind = Kind::gradients;
  std::uint32_t wants_barrier = 0;  // of all workers, for a checkpoint or a stop
};

/// How the gradients before it change the weights.
struct Numbers {
  UpdateStep step;
};

struct Answer {
  std::uint64_t barrier_after = 0;  // so many steps of each worker; 0: nobody asks for one
  std::uint32_t lead = 0;           // steps that this worker is ahead of the slowest
  std::uint32_t most_lead = 0;      // that any worker was since the start
};

/// A message: floats of an array that lie together.
struct MessagePart {
  std::size_t offset = 0, length = 0;
};

inline constexpr std::size_t kPartFloats = 64 * 1024;  // at most, of a part

/// The parts in which these floats travel, in their order.
inline void cut_into_parts(std::size_t offset, std::size_t length, std::vector<MessagePart>& out) {
  for (std::size_t done = 0; done < length; done += kPartFloats)
    out.push_back({offset + done, std::min(kPartFloats, length - done)});
}

template <class Struct>
std::span<const std::byte> message_of(const Struct& one) {
  return std::as_bytes(std::span(&one, 1));
}
template <class Struct>
Result<Struct> receive_one(Transport& link, int from) {
  Struct out;
  TRY(link.wait(TRY(link.receive_start(std::as_writable_bytes(std::span(&out, 1)), from))));
  return out;
}
inline Result<void> send_now(Transport& link, std::span<const std::byte> data, int to) {
  return link.wait(TRY(link.send_start(data, to)));
}

}  // namespace dlrun::runtime
