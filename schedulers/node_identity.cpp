// Comparing names: a label at a time, from the left, in lower case.
#include "schedulers/node_identity.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>

#include "src/base/strings.hpp"

namespace dlrun {
namespace {

struct Address {
  int family;
  std::array<unsigned char, 16> bytes;
};

std::optional<Address> parse_address(std::string_view name) {
  const std::string text(name.substr(0, name.find('%')));  // fe80::1%eth0: the zone is the reader's own
  Address out{};
  for (const int family : {AF_INET, AF_INET6}) {
    out.family = family;
    if (::inet_pton(family, text.c_str(), out.bytes.data()) == 1) return out;
  }
  return std::nullopt;
}

std::string comparable(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);  // the root's dot
  return lower(name);
}

// Equal, or the one is the other's beginning up to a dot.
bool may_be_same(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (!b.starts_with(a)) return false;
  return a.size() == b.size() || (b[a.size()] == '.' && !is_address(a) && !is_address(b));
}

}  // namespace

// 1.2.3.089 is no address to the system, and still nothing to shorten at a dot.
bool is_address(std::string_view name) {
  const bool dotted_numbers = name.find_first_not_of("0123456789.") == std::string_view::npos &&
                              name.find('.') != std::string_view::npos;
  return dotted_numbers || parse_address(name).has_value();
}

bool is_private_address(std::string_view name) {
  const auto address = parse_address(name);
  if (!address) return false;
  const auto& bytes = address->bytes;
  if (address->family == AF_INET6) return (bytes[0] & 0xfe) == 0xfc;
  return bytes[0] == 10 || (bytes[0] == 172 && (bytes[1] & 0xf0) == 16) ||
         (bytes[0] == 192 && bytes[1] == 168) || (bytes[0] == 100 && (bytes[1] & 0xc0) == 64);
}

bool is_loopback(std::string_view name) {
  if (const auto address = parse_address(name)) {
    constexpr std::array<unsigned char, 16> one{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return address->family == AF_INET ? address->bytes[0] == 127 : address->bytes == one;
  }
  static const std::array<std::string_view, 6> labels{"localhost",     "localhost4",   "localhost6",
                                                      "ip6-localhost", "ip6-loopback", "loopback"};
  return std::find(labels.begin(), labels.end(), first_label(comparable(name))) != labels.end();
}

std::string_view first_label(std::string_view name) {
  return is_address(name) ? name : name.substr(0, name.find('.'));
}

NodeFinder::NodeFinder(std::span<const HostName> nodes) {
  names_.reserve(nodes.size());
  for (const HostName& node : nodes) {
    names_.push_back(comparable(node.get()));
    by_label_[std::string(first_label(names_.back()))].push_back(names_.size() - 1);
  }
}

Result<std::optional<std::size_t>> NodeFinder::find(std::string_view name) const {
  const std::string wanted = comparable(name);
  const auto same_label = by_label_.find(std::string(first_label(wanted)));
  if (same_label == by_label_.end()) return std::optional<std::size_t>{};
  std::vector<std::string> seen;
  std::optional<std::size_t> found;
  for (const std::size_t node : same_label->second) {
    if (names_[node] == wanted) return std::optional(node);
    if (!may_be_same(names_[node], wanted)) continue;
    if (!found) found = node;
    if (std::find(seen.begin(), seen.end(), names_[node]) == seen.end()) seen.push_back(names_[node]);
  }
  if (seen.size() > 1)
    return fail(Error{.kind = ErrorKind::allocation,
                      .what = fmt::format("host {} may be any of {}", name, join(seen, ", ")),
                      .hint = "use the full name"});
  return found;
}

std::optional<std::size_t> NodeFinder::find_by_label(std::string_view name) const {
  const auto same_label = by_label_.find(std::string(first_label(comparable(name))));
  if (same_label == by_label_.end()) return std::nullopt;
  const std::vector<std::size_t>& nodes = same_label->second;
  for (const std::size_t node : nodes)
    if (names_[node] != names_[nodes.front()]) return std::nullopt;
  return nodes.front();
}

Result<std::vector<std::size_t>> same_nodes(std::span<const HostName> names) {
  // The longest spellings are the nodes; each shorter one must be the beginning of one of them only.
  std::unordered_map<std::string, std::size_t> first_of;
  std::vector<HostName> spellings;
  std::vector<std::size_t> spelling_of(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [place, is_new] = first_of.try_emplace(comparable(names[i].get()), spellings.size());
    if (is_new) spellings.emplace_back(place->first);
    spelling_of[i] = place->second;
  }
  std::unordered_map<std::string, std::vector<std::size_t>> by_label;
  for (std::size_t i = 0; i < spellings.size(); ++i)
    by_label[std::string(first_label(spellings[i].get()))].push_back(i);
  std::vector<std::size_t> node_of(spellings.size());
  for (std::size_t i = 0; i < spellings.size(); ++i) {
    node_of[i] = i;
    std::vector<HostName> longer;
    for (const std::size_t other : by_label[std::string(first_label(spellings[i].get()))])
      if (spellings[other].get().size() > spellings[i].get().size() &&
          may_be_same(spellings[i].get(), spellings[other].get()))
        longer.push_back(spellings[other]);
    if (longer.empty()) continue;
    const auto longest = std::max_element(longer.begin(), longer.end(), [](const auto& a, const auto& b) {
      return a.get().size() < b.get().size();
    });
    for (const HostName& other : longer)
      if (!may_be_same(other.get(), longest->get()))
        return fail(Error{.kind = ErrorKind::allocation,
                          .what = fmt::format("host {} may be {} or {}", spellings[i], other, *longest),
                          .hint = "use one spelling per node"});
    node_of[i] = first_of.at(longest->get());
  }
  std::unordered_map<std::size_t, std::size_t> first_position;
  std::vector<std::size_t> out(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    out[i] = first_position.try_emplace(node_of[spelling_of[i]], i).first->second;
  return out;
}

bool is_machine(std::string_view name, const MachineNames& machine) {
  if (is_loopback(name)) return true;
  if (is_address(name))
    return std::find(machine.addresses.begin(), machine.addresses.end(), name) != machine.addresses.end();
  const std::string wanted = comparable(name);
  return std::any_of(machine.names.begin(), machine.names.end(), [&](const std::string& own) {
    return !is_loopback(own) && may_be_same(comparable(own), wanted);
  });
}

Result<std::optional<std::size_t>> find_machine(const NodeFinder& nodes, const MachineNames& machine) {
  for (const std::vector<std::string>& names : {machine.names, machine.addresses})
    for (const std::string& name : names)
      if (const auto found = TRY(nodes.find(name))) return found;
  for (const std::string& name : machine.names)
    if (const auto found = nodes.find_by_label(name)) return std::optional(*found);
  return std::optional<std::size_t>{};
}

}  // namespace dlrun
