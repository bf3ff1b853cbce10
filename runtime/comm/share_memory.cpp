// See share_memory.hpp.
#include "runtime/comm/share_memory.hpp"

#include <algorithm>
#include <vector>

namespace dlrun::runtime {
namespace {

// Outer Error: the ranks cannot talk. Inner one: this rank has no such memory.
Result<Result<CommonMemory>> open_common_memory(Communicator& node, std::size_t bytes) {
  CommonMemory::Ticket ticket;
  Result<CommonMemory> made = fail(Error{});
  if (node.rank() == 0) {
    made = CommonMemory::make(bytes);
    if (made) ticket = made->ticket();
  }
  TRY(node.broadcast(std::as_writable_bytes(std::span(&ticket, 1)), 0));
  if (node.rank() == 0) return made;
  return CommonMemory::open(ticket);
}

}  // namespace

Result<std::optional<CommonMemory>> share_memory(Communicator& world, Communicator& node, std::size_t bytes) {
  auto memory = TRY(open_common_memory(node, bytes));
  const std::byte own{memory ? std::uint8_t{1} : std::uint8_t{0}};
  std::vector<std::byte> all(static_cast<std::size_t>(world.size()));
  TRY(world.allgather(std::span(&own, 1), all));
  if (std::count(all.begin(), all.end(), std::byte{1}) != world.size()) return std::optional<CommonMemory>();
  memory->close_descriptor();
  return std::optional<CommonMemory>(std::move(*memory));
}

}  // namespace dlrun::runtime
