// From entries to nodes: equal hosts become one, slots add up, and what contradicts itself is an error that
// shows both lines.
#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "schedulers/hostfile/hostfile.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

struct Merged {
  std::vector<std::size_t> lines;
  int slots = 0;
  bool has_count = false;
  std::optional<int> most_slots, cpus, gpus;
};

std::string line_of(const HostEntries& all, std::size_t line) {
  return all.source == "--hosts" ? all.source : fmt::format("{}:{}", all.source, line);
}

tl::unexpected<Error> conflicting_lines(const HostEntries& all, std::size_t line, std::string what,
                                        std::string hint) {
  return fail(Error{.kind = all.source == "--hosts" ? ErrorKind::usage : ErrorKind::allocation,
                    .what = std::move(what),
                    .where = line_of(all, line),
                    .hint = std::move(hint)});
}

// What a host has does not add up over its lines: it is said once, or alike.
Result<void> take_number(const HostEntries& all, const HostEntry& entry, std::string_view name,
                         std::optional<int> HostEntry::*member, const std::vector<std::size_t>& lines,
                         std::optional<int>& known) {
  if (entry.*member && known && entry.*member != known)
    return conflicting_lines(all, entry.line,
                             fmt::format("host {} has {}={} here and {} on line {}", entry.host, name,
                                         *(entry.*member), *known, lines.front()),
                             "keep one of them");
  if (entry.*member) known = entry.*member;
  return {};
}

void set_devices(AllocatedNode& node, const Merged& merged) {
  node.cpus = merged.cpus;
  if (!merged.gpus) return;
  node.gpus.emplace();
  for (int i = 0; i < *merged.gpus; ++i) node.gpus->push_back(std::to_string(i));
}

Result<void> add(const HostEntries& all, const HostEntry& entry, Merged& merged, AllocatedNode& node) {
  const int more = entry.slots.value_or(entry.most_slots.value_or(1));
  if (merged.slots > std::numeric_limits<int>::max() - more)
    return conflicting_lines(all, entry.line, fmt::format("host {} has too many slots", entry.host), "");
  if (entry.most_slots && merged.most_slots && entry.most_slots != merged.most_slots)
    return conflicting_lines(all, entry.line,
                             fmt::format("host {} has max_slots={} here and {} on line {}", entry.host,
                                         *entry.most_slots, *merged.most_slots, merged.lines.front()),
                             "keep one of them");
  if (entry.address && node.address && entry.address != node.address)
    return conflicting_lines(all, entry.line,
                             fmt::format("host {} has the address {} here and {} on line {}", entry.host,
                                         *entry.address, *node.address, merged.lines.front()),
                             "keep one of them");
  TRY(take_number(all, entry, "cpus", &HostEntry::cpus, merged.lines, merged.cpus));
  TRY(take_number(all, entry, "gpus", &HostEntry::gpus, merged.lines, merged.gpus));
  merged.lines.push_back(entry.line);
  merged.slots += more;
  merged.has_count = merged.has_count || entry.slots || entry.most_slots;
  if (entry.most_slots) merged.most_slots = entry.most_slots;
  if (entry.address) node.address = entry.address;
  return {};
}

Result<void> check_addresses(const HostEntries& all, const std::vector<AllocatedNode>& nodes) {
  std::unordered_map<std::string, std::string> owner;
  for (const AllocatedNode& node : nodes) {
    if (!node.address) continue;
    const auto [place, is_new] = owner.try_emplace(*node.address, node.host.get());
    if (!is_new)
      return fail(Error{.kind = ErrorKind::allocation,
                        .what = fmt::format("hosts {} and {} have the same private address {}", place->second,
                                            node.host, *node.address),
                        .where = all.source,
                        .hint = "each host has its own"});
  }
  return {};
}

// Lines that repeat a host with a count are legal, and often a copy that was not meant.
std::string repeated(const AllocatedNode& node, const Merged& merged) {
  std::vector<std::string> lines;
  for (const std::size_t line : merged.lines) lines.push_back(std::to_string(line));
  return fmt::format("host {} is listed {} times (line{} {}): its counts add up to {} slots", node.host,
                     lines.size(), lines.size() == 1 ? "" : "s", join(lines, ", "), node.slots);
}

}  // namespace

Result<void> add_addresses(HostEntries& entries, const HostEntries& addresses) {
  if (entries.entries.size() != addresses.entries.size())
    return fail(Error{.kind = ErrorKind::allocation,
                      .what = fmt::format("{} names {} hosts and {} names {} addresses", entries.source,
                                          entries.entries.size(), addresses.source, addresses.entries.size()),
                      .hint = "the two files must list the same hosts, line by line"});
  for (std::size_t i = 0; i < entries.entries.size(); ++i) {
    HostEntry& entry = entries.entries[i];
    const HostEntry& other = addresses.entries[i];
    if (other.slots && other.slots != entry.slots)
      return conflicting_lines(addresses, other.line,
                               fmt::format("{} slots here, and {} for host {} on line {} of {}", *other.slots,
                                           entry.slots ? std::to_string(*entry.slots) : "none", entry.host,
                                           entry.line, entries.source),
                               "set the slots in one file only");
    if (entry.address || other.address)
      return conflicting_lines(other.address ? addresses : entries, other.address ? other.line : entry.line,
                               "the address is set in the line and in the second file",
                               "set it in one of the two places");
    entry.address = other.host.get();
  }
  return {};
}

Result<Allocation> merge_entries(const HostEntries& all) {
  std::vector<HostName> names;
  names.reserve(all.entries.size());
  for (const HostEntry& entry : all.entries) names.push_back(entry.host);
  auto same = same_nodes(names);
  if (!same) {
    same.error().where = all.source;
    return tl::unexpected(std::move(same.error()));
  }
  Allocation out;
  out.scheduler = "hostfile";
  std::vector<Merged> merged;
  std::unordered_map<std::size_t, std::size_t> node_of;
  for (std::size_t i = 0; i < all.entries.size(); ++i) {
    const auto [place, is_new] = node_of.try_emplace((*same)[i], out.nodes.size());
    if (is_new) {
      out.nodes.emplace_back().host = all.entries[i].host;
      merged.emplace_back();
    }
    TRY(add(all, all.entries[i], merged[place->second], out.nodes[place->second]));
  }
  std::map<int, std::vector<HostName>> limits;
  std::size_t slots = 0;
  out.warnings = all.warnings;
  for (std::size_t i = 0; i < out.nodes.size(); ++i) {
    AllocatedNode& node = out.nodes[i];
    node.slots = merged[i].slots;
    set_devices(node, merged[i]);
    slots += static_cast<std::size_t>(node.slots);
    if (merged[i].most_slots) limits[*merged[i].most_slots].push_back(node.host);
    if (merged[i].most_slots && node.slots > *merged[i].most_slots)
      return conflicting_lines(
          all, merged[i].lines.back(),
          fmt::format("host {} has {} slots and max_slots={}", node.host, node.slots, *merged[i].most_slots),
          "raise max_slots, or lower slots");
    if (merged[i].lines.size() > 1 && merged[i].has_count) out.warnings.push_back(repeated(node, merged[i]));
  }
  const bool counted = std::any_of(merged.begin(), merged.end(), [](const Merged& host) {
    return host.has_count || host.lines.size() > 1;
  });
  if (counted)
    for (AllocatedNode& node : out.nodes) node.asked_slots = node.slots;
  TRY(check_addresses(all, out.nodes));
  out.evidence.push_back(fmt::format("{}: {} host{}, {} slots", all.source, out.nodes.size(),
                                     out.nodes.size() == 1 ? "" : "s", slots));
  for (const auto& [most, hosts] : limits)
    out.evidence.push_back(fmt::format("max_slots={}: {}", most, compress_hostlist(hosts)));
  return out;
}

std::vector<std::string> locality_warnings(const std::vector<AllocatedNode>& nodes,
                                           const MachineNames& machine) {
  std::vector<std::string> here, loopback, out;
  for (const AllocatedNode& node : nodes) {
    const std::string& host = node.host.get();
    if (is_loopback(host)) loopback.push_back(host);
    if (is_machine(host, machine) || (node.address && is_machine(*node.address, machine)))
      here.push_back(host);
  }
  if (here.size() > 1)
    out.push_back(fmt::format("{} all name this machine, which would be {} nodes: name it once",
                              join(here, ", "), here.size()));
  if (!loopback.empty() && here.size() < nodes.size())
    out.push_back(fmt::format(
        "{} is listed with other hosts, which cannot reach this machine by that name: write its host name",
        loopback.front()));
  return out;
}

}  // namespace dlrun
