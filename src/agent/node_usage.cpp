#include "src/agent/node_usage.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::agent {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  for (std::string& word : split(line, ' '))
    if (!trim(word).empty()) out.emplace_back(trim(word));
  return out;
}

std::optional<std::uint64_t> count(const std::vector<std::string>& words, std::size_t index) {
  if (index >= words.size()) return std::nullopt;
  const auto number = parse_integer(words[index], 0, std::numeric_limits<std::int64_t>::max());
  return number ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

// "cpu user nice system idle iowait irq softirq steal ...": guests count among user already.
void read_stat(std::string_view text, NodeCounters& out) {
  constexpr std::size_t fields = 8, idle = 4, iowait = 5;
  const std::vector<std::string> words = words_of(text.substr(0, text.find('\n')));
  if (words.size() <= fields || words[0] != "cpu") return;
  std::uint64_t total = 0, waiting = 0;
  for (std::size_t i = 1; i <= fields; ++i) {
    const std::uint64_t ticks = count(words, i).value_or(0);
    total += ticks;
    if (i == idle || i == iowait) waiting += ticks;
  }
  out.total = total, out.busy = total - waiting;
}

// "eth0: bytes packets ... (8 fields received) bytes ...".
void read_net(std::string_view text, NodeCounters& out) {
  constexpr std::size_t sent = 8;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || trim(line.substr(0, colon)) == "lo") continue;
    const std::vector<std::string> words = words_of(line.substr(colon + 1));
    const auto in = count(words, 0), away = count(words, sent);
    if (!in || !away) continue;
    out.received = out.received.value_or(0) + *in;
    out.sent = out.sent.value_or(0) + *away;
  }
}

void read_memory(std::string_view text, NodeCounters& out) {
  constexpr std::uint64_t kibi = 1024;
  std::optional<std::uint64_t> total, available;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (words[0] == "MemTotal:") total = count(words, 1);
    if (words[0] == "MemAvailable:") available = count(words, 1);
  }
  if (!total || !available) return;
  out.memory_total = *total * kibi;
  out.memory_used = (*total - std::min(*available, *total)) * kibi;
}

NodeCounters counters_now() {
  const auto text = [](const char* file) { return read_file(file).value_or(""); };
  return read_counters(text("/proc/stat"), text("/proc/net/dev"), text("/proc/meminfo"));
}

Json rate(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& after,
          Seconds time) {
  if (!before || !after || *after < *before || time.count() <= 0) return nullptr;
  return static_cast<double>(*after - *before) / time.count();
}

Json or_null(const std::optional<std::uint64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

NodeCounters read_counters(std::string_view stat, std::string_view net_dev, std::string_view meminfo) {
  NodeCounters out;
  read_stat(stat, out);
  read_net(net_dev, out);
  read_memory(meminfo, out);
  return out;
}

Json usage_between(const NodeCounters& before, const NodeCounters& after, Seconds between) {
  Json cpu = nullptr;
  if (before.total && after.total && *after.total > *before.total && *after.busy >= *before.busy)
    cpu = static_cast<double>(*after.busy - *before.busy) / static_cast<double>(*after.total - *before.total);
  return {{"cpu", std::move(cpu)},
          {"memory_used", or_null(after.memory_used)},
          {"memory_total", or_null(after.memory_total)},
          {"received_per_second", rate(before.received, after.received, between)},
          {"sent_per_second", rate(before.sent, after.sent, between)}};
}

NodeUsageMeter::NodeUsageMeter() : last_(counters_now()), when_(std::chrono::steady_clock::now()) {}

Json NodeUsageMeter::measure() {
  const NodeCounters now = counters_now();
  const Ticks when = std::chrono::steady_clock::now();
  Json out = usage_between(last_, now, when - when_);
  last_ = now, when_ = when;
  return out;
}

}  // namespace dlrun::agent
