#include "schedulers/gpus/sysfs_gpus.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/core.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  const auto text = read_file(file);
  return text ? std::string(trim(*text)) : std::string();
}

// The entries of a folder whose names are `prefix` and a number, by that number.
std::map<std::int64_t, fs::path> numbered(const fs::path& folder, std::string_view prefix) {
  std::map<std::int64_t, fs::path> out;
  std::error_code problem;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    if (const auto number = parse_integer(name.substr(prefix.size()), 0, 1'000'000))
      out.emplace(*number, at->path());
  }
  return out;
}

// "location_id 49408" and so on, a line each.
std::uint64_t property(const std::string& properties, const std::string& name) {
  std::uint64_t out = 0;
  for (const std::string& line : split(properties, '\n'))
    if (line.starts_with(name + " ")) std::from_chars(&line[name.size() + 1], line.data() + line.size(), out);
  return out;
}

std::string pci_of_location(const std::string& properties) {
  const std::uint64_t location = property(properties, "location_id");
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", property(properties, "domain"), location >> 8 & 0xff,
                     location >> 3 & 0x1f, location & 7);
}

// Where the card is on the bus, as its link says: .../0000:18:00.0.
std::string pci_of_device(const fs::path& device) {
  std::error_code problem;
  const fs::path target = fs::read_symlink(device, problem);
  return problem ? std::string() : target.filename().string();
}

// A display controller that is no VGA one: Intel's GPUs for computing, not the graphics of its processors.
bool is_intel_accelerator(const fs::path& device) {
  return text_of(device / "vendor") == "0x8086" && text_of(device / "class").starts_with("0x0380");
}

// i915 has a gt per tile, xe a folder per tile.
std::size_t tiles_of(const fs::path& card) {
  return std::max(
      {std::size_t{1}, numbered(card / "gt", "gt").size(), numbered(card / "device", "tile").size()});
}

}  // namespace

std::vector<SysfsGpu> amd_gpus(const fs::path& root) {
  std::vector<SysfsGpu> out;
  for (const auto& [number, node] : numbered(root / "sys/class/kfd/kfd/topology/nodes", "")) {
    const std::string id = text_of(node / "gpu_id");  // 0 for a processor
    const std::string properties = text_of(node / "properties");
    if (id.empty() || id == "0" || properties.empty()) continue;
    const std::uint64_t unique = property(properties, "unique_id");
    out.push_back({.name = std::to_string(out.size()),
                   .uuid = unique == 0 ? std::string() : fmt::format("GPU-{:016x}", unique),
                   .pci_bus_id = pci_of_location(properties)});
  }
  return out;
}

std::vector<SysfsGpu> intel_gpus(const fs::path& root, const Environment& environment) {
  // The driver's own default counts tiles as devices.
  const bool flat = environment.get("ZE_FLAT_DEVICE_HIERARCHY", "FLAT") == "FLAT";
  std::map<std::pair<std::string, std::int64_t>, std::size_t> cards;  // in the order of the bus
  for (const auto& [number, card] : numbered(root / "sys/class/drm", "card"))
    if (is_intel_accelerator(card / "device"))
      cards[{pci_of_device(card / "device"), number}] = tiles_of(card);
  std::vector<SysfsGpu> out;
  std::size_t device = 0;
  for (const auto& [place, tiles] : cards) {
    for (std::size_t tile = 0; tile < tiles; ++tile)
      out.push_back({.name = flat || tiles == 1 ? std::to_string(flat ? out.size() : device)
                                                : fmt::format("{}.{}", device, tile),
                     .pci_bus_id = place.first});
    ++device;
  }
  return out;
}

std::vector<SysfsGpu> sysfs_gpus(const fs::path& root, const Environment& environment) {
  std::vector<SysfsGpu> out = amd_gpus(root);
  return out.empty() ? intel_gpus(root, environment) : out;
}

}  // namespace dlrun
