// See copies.hpp.
#include "runtime/comm/allreduce/broadcast_allgather.hpp"

#include <cstring>
#include <vector>

namespace dlrun::runtime {

// Ranks count from the root. A rank hears from the one whose number lacks its lowest bit, and tells those
// that have one bit more below that.
Result<void> tree_broadcast(Transport& link, std::span<std::byte> data, int root) {
  const int ranks = link.size(), own = (link.rank() - root + ranks) % ranks;
  const auto rank_of = [&](int number) { return (number + root) % ranks; };
  int bit = 1;
  while (bit < ranks && (own & bit) == 0) bit *= 2;
  if (own != 0) TRY(link.wait(TRY(link.receive_start(data, rank_of(own - bit)))));
  std::vector<Transport::Ticket> leaving;
  for (bit /= 2; bit > 0; bit /= 2)
    if (own + bit < ranks) leaving.push_back(TRY(link.send_start(data, rank_of(own + bit))));
  return link.wait_for(leaving);
}

Result<void> direct_allgather(Transport& link, std::span<const std::byte> mine, std::span<std::byte> all) {
  const std::size_t each = mine.size();
  const auto part = [&](int rank) { return all.subspan(static_cast<std::size_t>(rank) * each, each); };
  std::vector<Transport::Ticket> under_way;
  for (int step = 1; step < link.size(); ++step) {
    const int from = (link.rank() + link.size() - step) % link.size();
    under_way.push_back(TRY(link.receive_start(part(from), from)));
  }
  for (int step = 1; step < link.size(); ++step)
    under_way.push_back(TRY(link.send_start(mine, (link.rank() + step) % link.size())));
  if (each > 0) std::memmove(part(link.rank()).data(), mine.data(), each);
  return link.wait_for(under_way);
}

}  // namespace dlrun::runtime
