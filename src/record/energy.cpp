#include "src/record/energy.hpp"

#include <algorithm>
#include <cmath>

namespace dlrun::job {
namespace {

// Then every second one goes: a run of weeks has some thousands.
constexpr std::size_t kMaxSamples = 4096, kMaxEpochs = 10'000;

// A node that tells nothing for so long is gone: what it used stays in the sum.
constexpr Seconds kSilent{30};

std::optional<double> number(const Json& json, const char* name) {
  const auto value = field<double>(json, name, "usage");
  return value ? std::optional(*value) : std::nullopt;
}

Json rounded(std::optional<double> joules) {
  return joules ? Json(std::round(*joules * 1e3) / 1e3) : Json(nullptr);
}

std::optional<double> between(std::optional<double> from, std::optional<double> to) {
  return from && to ? std::optional(*to - *from) : std::nullopt;
}

std::optional<double> mixed(std::optional<double> a, std::optional<double> b, double share) {
  return a && b ? std::optional(*a + share * (*b - *a)) : std::nullopt;
}

}  // namespace

EnergyAccounting::Sum EnergyAccounting::sum() const {
  Sum out{0.0, 0.0};
  const auto add = [](std::optional<double>& to, std::optional<double> more) {
    to = to && more ? std::optional(*to + *more) : std::nullopt;
  };
  for (const auto& [host, usage] : usage_)
    add(out.cpu, number(usage, "cpu_joules")), add(out.gpu, number(usage, "gpu_joules"));
  if (usage_.size() < nodes_ || usage_.empty()) return {};
  return out;
}

// A host may have an agent after another one, each of which counts from the start of its ranks.
Json EnergyAccounting::in_all(const std::string& host, Json usage, NodeIndex agent) {
  for (const char* const name : {"cpu_joules", "gpu_joules"}) {
    const auto found = counters_[host].find(name);
    const bool counts_yet = usage.contains(name);
    if (!counts_yet && found != counters_[host].end()) usage[name] = found->second.total;
    const auto told = counts_yet ? number(usage, name) : std::nullopt;
    if (!told) continue;
    Counter& counter = counters_[host][name];
    if (counter.agent && *counter.agent != agent) counter.before = counter.total - *told;
    counter.agent = agent;
    counter.total = counter.before + *told;
    usage[name] = counter.total;
  }
  return usage;
}

void EnergyAccounting::take(const std::string& host, const Json& usage, Ticks now, NodeIndex agent) {
  usage_[host] = in_all(host, usage, agent);
  if (!began_) began_ = now;
  // A sample is of all nodes: those that have told would else count against those that have not yet.
  told_[host] = now;
  fresh_.insert(host);
  const auto is_awaited = [&](const auto& each) {
    return now - each.second < kSilent && !fresh_.contains(each.first);
  };
  if (usage_.size() < nodes_ || std::any_of(told_.begin(), told_.end(), is_awaited)) return;
  fresh_.clear();
  samples_.push_back({now, sum()});
  if (samples_.size() <= kMaxSamples) return;
  for (std::size_t i = 0; 2 * i + 1 < samples_.size(); ++i) samples_[i] = samples_[2 * i + 1];
  samples_.resize(samples_.size() / 2);
}

void EnergyAccounting::reported(const Json& report, Ticks now) {
  const auto epoch = field<std::int64_t>(report, "epoch", "report");
  if (const auto step = field<std::int64_t>(report, "step", "report")) step_ = *step;
  if (const auto samples = number(report, "samples"); samples && *samples > 0) trained_ = samples;
  if (!epoch || *epoch <= epoch_) return;
  if (epoch_ > 0 && epochs_.size() < kMaxEpochs) epochs_.push_back({epoch_, now});
  epoch_ = *epoch;
}

// On a line between the samples around it.
EnergyAccounting::Sum EnergyAccounting::at(Ticks when) const {
  const auto after = std::lower_bound(samples_.begin(), samples_.end(), when,
                                      [](const Sample& sample, Ticks time) { return sample.when < time; });
  if (after == samples_.end()) return samples_.empty() ? Sum{} : samples_.back().sum;
  if (after == samples_.begin()) return after->when == when ? after->sum : Sum{};
  const Sample& before = *(after - 1);
  const double share = Seconds(when - before.when) / Seconds(after->when - before.when);
  return {mixed(before.sum.cpu, after->sum.cpu, share), mixed(before.sum.gpu, after->sum.gpu, share)};
}

Json EnergyAccounting::per_epoch() const {
  Json out = Json::array();
  Sum before{0.0, 0.0};
  for (const Epoch& epoch : epochs_) {
    const Sum now = at(epoch.ended);
    out.push_back({{"epoch", epoch.number},
                   {"cpu_joules", rounded(between(before.cpu, now.cpu))},
                   {"gpu_joules", rounded(between(before.gpu, now.gpu))}});
    before = now;
  }
  if (epoch_ > 0) {
    const Sum now = sum();
    out.push_back({{"epoch", epoch_},
                   {"cpu_joules", rounded(between(before.cpu, now.cpu))},
                   {"gpu_joules", rounded(between(before.gpu, now.gpu))}});
  }
  return out;
}

std::string EnergyAccounting::why_not(const char* name) const {
  for (const auto& [host, usage] : usage_)
    if (const auto why = field<std::string>(usage, name, "usage")) return host + ": " + *why;
  return usage_.size() < nodes_ ? "not every node has told" : "no node tells";
}

std::optional<Json> EnergyAccounting::metrics_line() const {
  const Sum now = sum();
  Json out{{"step", step_}};
  if (now.cpu) out["energy_cpu_joules"] = rounded(now.cpu);
  if (now.gpu) out["energy_gpu_joules"] = rounded(now.gpu);
  double use = 0, memory = 0;
  std::size_t with_use = 0, with_memory = 0;
  for (const auto& [host, usage] : usage_) {
    if (const auto gpu = number(usage, "gpu")) use += *gpu, ++with_use;
    if (const auto used = number(usage, "gpu_memory_used")) memory += *used, ++with_memory;
  }
  if (with_use > 0) out["gpu_use"] = std::round(use / static_cast<double>(with_use) * 1e3) / 1e3;
  if (with_memory > 0) out["gpu_memory_bytes"] = memory;
  return step_ < 0 || out.size() == 1 ? std::nullopt : std::optional(std::move(out));
}

Json EnergyAccounting::all() const {
  const Sum whole = sum();
  const auto per_thousand = [&](std::optional<double> joules) {
    return joules && trained_ ? std::optional(*joules / *trained_ * 1000) : std::nullopt;
  };
  Json out{{"cpu_joules", rounded(whole.cpu)},
           {"gpu_joules", rounded(whole.gpu)},
           {"per_epoch", per_epoch()},
           {"per_1000_samples",
            {{"samples", trained_ ? Json(*trained_) : Json(nullptr)},
             {"cpu_joules", rounded(per_thousand(whole.cpu))},
             {"gpu_joules", rounded(per_thousand(whole.gpu))}}}};
  if (!whole.cpu) out["cpu_why"] = why_not("cpu_why");
  if (!whole.gpu) out["gpu_why"] = why_not("gpu_why");
  return out;
}

}  // namespace dlrun::job
