// See sums.hpp: the choice.
#include "runtime/comm/allreduce/allreduce.hpp"

namespace dlrun::runtime {
namespace {

// Below this, a message costs more by its start than by its bytes. Two ranks have equally many messages
// either way, and the ring's pieces overlap.
constexpr std::size_t ring_from_bytes_per_rank = 32 * 1024;
constexpr std::size_t short_wire_from_bytes = 64 * 1024;

}  // namespace

AllreduceAlgorithm choose_sum(std::size_t bytes, int ranks, Wire wire) {
  if (wire != Wire::f32 && bytes >= short_wire_from_bytes) return AllreduceAlgorithm::exchange;
  return bytes < ring_from_bytes_per_rank * static_cast<std::size_t>(ranks) ? AllreduceAlgorithm::halving
                                                                            : AllreduceAlgorithm::ring;
}

Result<void> sum_over(Transport& link, std::span<float> data, Wire wire, Scratch& scratch) {
  switch (choose_sum(data.size_bytes(), link.size(), wire)) {
    case AllreduceAlgorithm::halving:
      return recursive_halving_doubling(link, data, scratch);
    case AllreduceAlgorithm::ring:
      return ring_allreduce(link, data, scratch);
    case AllreduceAlgorithm::exchange:
      break;
  }
  return direct_allreduce(link, data, wire, scratch);
}

}  // namespace dlrun::runtime
