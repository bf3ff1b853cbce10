// The processors that a node gives us, what else runs on it, and its memory. A node with fewer processors
// than the others, or on which somebody else computes, holds up a job that steps in time.
#include <cstdlib>

#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

constexpr double kBusyBesideOthers = 4;  // times the load of the median node

Json usable() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return ::sysconf(_SC_NPROCESSORS_ONLN);
  return CPU_COUNT(&set);
}

Json measure(const Question&) {
  double load[1] = {0};
  struct sysinfo system {};
  if (::getloadavg(load, 1) != 1 || ::sysinfo(&system) != 0) return {{"error", "the kernel does not tell"}};
  return {{"usable", usable()},
          {"online", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"load", load[0]},
          {"memory", static_cast<std::uint64_t>(system.totalram) * system.mem_unit}};
}

std::vector<Found> busy(const std::vector<Sample>& samples) {
  std::vector<double> loads;
  for (const Sample& sample : samples) loads.push_back(number_of(sample.values, "load").value_or(0));
  const double usual = median(loads);
  std::vector<Found> out;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double processors = number_of(samples[i].values, "online").value_or(1);
    if (loads[i] > processors && loads[i] > kBusyBesideOthers * usual)
      out.push_back({samples[i].node, State::warning,
                     fmt::format("its load is {:.1f} on {:.0f} processors: somebody else computes there",
                                 loads[i], processors)});
  }
  return out;
}

// To gibibytes: firmware takes a little of it, and not always the same.
std::vector<Sample> in_gibibytes(std::vector<Sample> samples) {
  constexpr double gibi = 1 << 30;
  for (Sample& sample : samples)
    if (const auto memory = number_of(sample.values, "memory"))
      sample.values["memory"] = fmt::format("{:.0f} GiB", *memory / gibi);
  return samples;
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<Found> out = different(samples, "usable", "processors");
  append(out, different(in_gibibytes(samples), "memory", "memory"));
  append(out, busy(samples));
  return out;
}

}  // namespace

Check processors_check() {
  return {.name = "processors", .measure = measure, .judge = judge};
}

}  // namespace dlrun::health
