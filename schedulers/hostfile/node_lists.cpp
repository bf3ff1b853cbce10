#include "schedulers/hostfile/node_lists.hpp"

#include <algorithm>

#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/node_identity.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  constexpr std::string_view blanks = " \t\r";
  for (std::size_t at = line.find_first_not_of(blanks); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    out.emplace_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return out;
}

std::vector<HostName> names_of(const std::vector<AllocatedNode>& nodes) {
  std::vector<HostName> out;
  out.reserve(nodes.size());
  for (const AllocatedNode& node : nodes) out.push_back(node.host);
  return out;
}

// "2(x3)": the count and how often it stands.
Result<std::pair<int, std::size_t>> read_count(std::string_view part) {
  const std::size_t open = part.find('(');
  const int count = static_cast<int>(TRY(parse_integer(part.substr(0, open), 0, kMaxSlots)));
  if (open == part.npos) return std::pair{count, std::size_t{1}};
  const std::string_view times = part.substr(open);
  if (!times.starts_with("(x") || !times.ends_with(")"))
    return fail(ErrorKind::allocation, "'{}' is not of the form COUNT(xTIMES)", part);
  const auto repeats = TRY(parse_integer(times.substr(2, times.size() - 3), 1, kMaxHosts));
  return std::pair{count, static_cast<std::size_t>(repeats)};
}

}  // namespace

std::vector<WordLine> word_lines(std::string_view text) {
  std::vector<WordLine> out;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    WordLine line{.number = ++number, .words = words_of(text.substr(0, end))};
    if (!line.words.empty()) out.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Error unreadable(std::string what, std::string_view where, std::string_view hint) {
  return Error{.kind = ErrorKind::allocation,
               .what = std::move(what),
               .where = std::string(where),
               .hint = std::string(
                   hint.empty() ? "--allocation FILE or --hostfile FILE sets the nodes explicitly" : hint)};
}

Error conflict(std::string_view what, std::string_view first, std::string_view second) {
  Error out = unreadable(fmt::format("{} disagree", what), {}, {});
  out.also = {std::string(first), std::string(second)};
  return out;
}

Error about_allocation(Error error, std::string_view where) {
  error.kind = ErrorKind::allocation;
  error.where = error.where.empty() ? std::string(where) : fmt::format("{}: {}", where, error.where);
  return error;
}

Result<NamedFile> file_of_variable(const Environment& environment, std::string_view variable) {
  const auto path = environment.find(variable);
  if (!path || path->empty()) return fail(unreadable(fmt::format("{} is not set", variable), {}));
  auto text = read_file(*path);
  if (!text) return fail(about_allocation(text.error(), fmt::format("{}={}", variable, *path)));
  return NamedFile{.path = *path, .text = std::move(*text)};
}

Result<std::vector<AllocatedNode>> group_nodes(const std::vector<AllocatedNode>& entries,
                                               std::string_view where) {
  const std::vector<HostName> names = names_of(entries);
  auto first = same_nodes(names);
  if (!first) return fail(about_allocation(first.error(), where));
  std::vector<AllocatedNode> out;
  std::vector<std::size_t> position(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if ((*first)[i] == i) {
      position[i] = out.size();
      out.push_back(entries[i]);
      continue;
    }
    AllocatedNode& node = out[position[(*first)[i]]];
    node.slots += entries[i].slots;
    if (node.cpus && entries[i].cpus) node.cpus = *node.cpus + *entries[i].cpus;
    if (node.asked_slots && entries[i].asked_slots)
      node.asked_slots = *node.asked_slots + *entries[i].asked_slots;
  }
  return out;
}

Result<std::vector<AllocatedNode>> nodes_of_lines(std::string_view text, std::string_view where) {
  std::vector<AllocatedNode> entries;
  for (const WordLine& line : word_lines(text)) {
    const std::string place = fmt::format("{}:{}", where, line.number);
    if (line.words.size() > 1)
      return fail(unreadable(fmt::format("unexpected '{}' after the node name '{}'; a line has one name",
                                         line.words[1], line.words[0]),
                             place));
    if (auto good = check_host_name(line.words[0]); !good) return fail(about_allocation(good.error(), place));
    entries.push_back({.host = HostName(line.words[0]), .slots = 1, .cpus = {}, .gpus = {}});
  }
  if (entries.empty()) return fail(unreadable("the node file is empty", where));
  return group_nodes(entries, where);
}

Result<std::vector<int>> expand_counts(std::string_view text, std::string_view where) {
  std::vector<int> out;
  for (const std::string& part : split(text, ',')) {
    const auto count = read_count(part);
    if (!count)
      return fail(
          unreadable(fmt::format("'{}' is not a list of counts like 2(x3),1: at '{}'", text, part), where));
    if (out.size() + count->second > kMaxHosts)
      return fail(unreadable(fmt::format("'{}' has more than {} counts", text, kMaxHosts), where));
    out.insert(out.end(), count->second, count->first);
  }
  return out;
}

Result<bool> same_slots(const std::vector<AllocatedNode>& one, const std::vector<AllocatedNode>& other) {
  if (one.size() != other.size()) return false;
  const std::vector<HostName> names = names_of(one);
  const NodeFinder finder(names);
  std::vector<bool> seen(one.size(), false);
  for (const AllocatedNode& node : other) {
    const auto at = TRY(finder.find(node.host.get()));
    if (!at || seen[*at] || one[*at].slots != node.slots) return false;
    seen[*at] = true;
  }
  return true;
}

std::string describe(const std::vector<AllocatedNode>& nodes) {
  constexpr std::size_t most = 12;
  std::string out;
  for (std::size_t i = 0; i < nodes.size() && i < most; ++i)
    out += fmt::format("{}{}:{}", i == 0 ? "" : " ", nodes[i].host, nodes[i].slots);
  if (nodes.size() > most) out += fmt::format(" and {} more", nodes.size() - most);
  return out;
}

}  // namespace dlrun
