#include "src/run/refills.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::job {

Refills::Chance Refills::count(Host& host, Ticks now) const {
  const bool was_over = is_over(host);
  ++host.row;
  Seconds wait = kFirstWait;
  for (int i = 1; i < host.row && wait < kMaxWait; ++i) wait *= 2;
  host.next = now + std::chrono::duration_cast<Ticks::duration>(std::min(wait, kMaxWait));
  return is_over(host) && !was_over ? Chance::none : Chance::again;
}

// Several that are lost together are one loss.
Refills::Chance Refills::lost(const std::string& host, Rank rank, Ticks now) {
  if (starts_ == 0) return Chance::again;
  Host& there = hosts_[host];
  there.free.push_back(rank);
  if (there.free.size() > 1) return Chance::again;
  if (there.filled && now - *there.filled >= kLongLife) there.row = 0;
  return count(there, now);
}

std::vector<std::string> Refills::due(Ticks now) const {
  std::vector<std::string> out;
  for (const auto& [name, host] : hosts_)
    if (!host.free.empty() && host.begun.empty() && !is_over(host) && now >= host.next) out.push_back(name);
  return out;
}

std::vector<Rank> Refills::begin(const std::string& host) {
  Host& there = hosts_.at(host);
  return there.begun = std::exchange(there.free, {});
}

void Refills::joined(const std::string& host, Ticks now) {
  const auto there = hosts_.find(host);
  if (there == hosts_.end()) return;
  there->second.begun.clear();
  there->second.filled = now;
}

Refills::Chance Refills::failed(const std::string& host, Ticks now) {
  const auto there = hosts_.find(host);
  if (there == hosts_.end()) return Chance::again;
  Host& it = there->second;
  it.free.insert(it.free.end(), it.begun.begin(), it.begun.end());
  it.begun.clear();
  return count(it, now);
}

bool Refills::waits() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [&](const auto& each) { return !each.second.free.empty() && !is_over(each.second); });
}

}  // namespace dlrun::job
