// See nodes.hpp.
#include "runtime/comm/allreduce/nodes.hpp"

#include <algorithm>

#include "runtime/base/keyed_random.hpp"
#include "runtime/comm/transport/tcp.hpp"
#include "src/base/file.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

Result<std::uint64_t> own_node(int rank, const Environment& environment) {
  if (const auto text = environment.find("DLRUN_NODE_RANKS")) {
    const auto ranks = parse_integer(*text, 1, 1 << 20);
    if (!ranks)
      return fail(Error{.kind = ErrorKind::usage,
                        .what = fmt::format("DLRUN_NODE_RANKS is '{}'", *text),
                        .hint = "set it to the number of ranks per node, or unset it"});
    return static_cast<std::uint64_t>(rank / *ranks);
  }
  const auto start = read_file("/proc/sys/kernel/random/boot_id");  // without it the name must do
  return random_key({hash_text(tcp::own_host()), hash_text(start ? *start : std::string())});
}

Result<void> check_even(std::span<const std::uint64_t> node_of, const NodeGroups& groups,
                        std::string_view asked_by) {
  for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
    const auto count = std::count(node_of.begin(), node_of.end(), node_of[rank]);
    const auto own = static_cast<std::ptrdiff_t>(groups.inside.size());
    if (count != own)
      return fail(Error{
          .kind = ErrorKind::allocation,
          .what = fmt::format("the hierarchical allreduce needs the same number of ranks on every node: "
                              "the node of rank {} has {}, that of rank {} has {}",
                              groups.inside.front(), own, rank, count),
          .hint = fmt::format("start the same number of ranks on every node, or set {} to auto", asked_by)});
  }
  return {};
}

}  // namespace

Result<std::vector<std::uint64_t>> gather_nodes(Communicator& world, const Environment& environment) {
  const std::uint64_t own = TRY(own_node(world.rank(), environment));
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world.size()));
  TRY(world.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all))));
  return all;
}

Result<NodeGroups> node_groups_of(std::span<const std::uint64_t> node_of, int rank,
                                  std::string_view asked_by) {
  const std::uint64_t own = node_of[static_cast<std::size_t>(rank)];
  const auto number_in_node = [&](std::size_t of) {
    return std::count(node_of.begin(), node_of.begin() + static_cast<std::ptrdiff_t>(of), node_of[of]);
  };
  const auto number = number_in_node(static_cast<std::size_t>(rank));
  NodeGroups out;
  for (std::size_t other = 0; other < node_of.size(); ++other) {
    out.number_of.push_back(static_cast<int>(number_in_node(other)));
    if (node_of[other] == own) out.inside.push_back(static_cast<int>(other));
    if (number_in_node(other) == number) out.across.push_back(static_cast<int>(other));
  }
  TRY(check_even(node_of, out, asked_by));
  return out;
}

}  // namespace dlrun::runtime
