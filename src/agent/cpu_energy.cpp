#include "src/agent/cpu_energy.hpp"

#include <algorithm>
#include <limits>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr double kMicro = 1e-6;

Result<std::uint64_t> number_in(const fs::path& file) {
  const std::string text = TRY(read_file(file));
  return static_cast<std::uint64_t>(
      TRY(parse_integer(trim(text), 0, std::numeric_limits<std::int64_t>::max())));
}

// "package-0"; what is inside of a package, such as its cores, would count twice.
bool is_package(const fs::path& zone) {
  return read_file(zone / "name").value_or("").starts_with("package");
}

}  // namespace

Result<void> CpuEnergy::find_packages() {
  packages_.clear();
  std::error_code problem;
  std::vector<fs::path> zones;
  for (const auto& zone : fs::directory_iterator(powercap_, problem)) zones.push_back(zone.path());
  std::sort(zones.begin(), zones.end());
  for (const fs::path& zone : zones) {
    if (!is_package(zone)) continue;
    const std::uint64_t full = TRY(number_in(zone / "max_energy_range_uj"));
    packages_.push_back({zone / "energy_uj", full, TRY(number_in(zone / "energy_uj"))});
  }
  if (!packages_.empty()) return {};
  return fail(ErrorKind::unavailable, "{} has no counters of processors", powercap_.string());
}

void CpuEnergy::begin() {
  microjoules_ = 0;
  if (auto found = find_packages(); !found) packages_.clear(), why_not_ = std::move(found).error();
}

Result<double> CpuEnergy::joules() {
  if (packages_.empty()) return fail(why_not_);
  for (Package& package : packages_) {
    const std::uint64_t now = TRY(number_in(package.counter));
    const std::uint64_t used = now >= package.last ? now - package.last : package.full - package.last + now;
    microjoules_ += static_cast<double>(used);
    package.last = now;
  }
  return microjoules_ * kMicro;
}

}  // namespace dlrun::agent
