// See star_sum.hpp.
#include "runtime/comm/star_sum.hpp"

#include <cstdint>
#include <map>

namespace dlrun::runtime {
namespace {

// What goes ahead of a rank's numbers.
struct Heading {
  std::int64_t group = 0;
  std::uint64_t count = 0;
};

template <class T>
std::span<std::byte> bytes_in(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

Result<void> through_rank_0(PeerLinks& links, const StarPlace& place, std::span<float> data, Wire wire) {
  Heading heading{place.group, data.size()};
  std::vector<std::byte> packed(bytes_of(wire, data.size()));
  pack(wire, packed.data(), data.data(), data.size());
  TRY(links.send(0, bytes_in(heading)));
  TRY(links.send(0, packed));
  TRY(links.receive(0, packed));
  unpack(wire, data.data(), packed.data(), data.size());
  return {};
}

// What rank 0 holds for each group.
using Sums = std::map<std::int64_t, std::vector<float>>;

Result<std::int64_t> add_from(PeerLinks& links, int peer, Wire wire, Sums& sums) {
  Heading heading;
  TRY(links.receive(peer, bytes_in(heading)));
  std::vector<float>& sum = sums.try_emplace(heading.group, heading.count).first->second;
  if (sum.size() != heading.count)
    return fail(ErrorKind::internal, "rank {} sums {} floats where its group sums {}", peer, heading.count,
                sum.size());
  std::vector<std::byte> packed(bytes_of(wire, sum.size()));
  TRY(links.receive(peer, packed));
  add_unpacked(wire, sum.data(), packed.data(), sum.size());
  return heading.group;
}

Result<void> for_all(PeerLinks& links, const StarPlace& place, std::span<float> data, Wire wire) {
  Sums sums;
  sums[place.group].assign(data.begin(), data.end());
  std::vector<std::int64_t> group_of{place.group};
  for (int peer = 1; peer < place.ranks; ++peer) group_of.push_back(TRY(add_from(links, peer, wire, sums)));
  std::map<std::int64_t, std::vector<std::byte>> packed;
  for (auto& [group, sum] : sums) {
    packed[group].resize(bytes_of(wire, sum.size()));
    pack_rounding(wire, packed[group].data(), sum.data(), sum.size());
  }
  for (int peer = 1; peer < place.ranks; ++peer)
    TRY(links.send(peer, packed[group_of[static_cast<std::size_t>(peer)]]));
  const std::vector<float>& own = sums[place.group];
  std::copy(own.begin(), own.end(), data.begin());
  return {};
}

}  // namespace

Result<void> star_group_sum(PeerLinks& links, const StarPlace& place, std::span<float> data, Wire wire) {
  return place.rank == 0 ? for_all(links, place, data, wire) : through_rank_0(links, place, data, wire);
}

}  // namespace dlrun::runtime
