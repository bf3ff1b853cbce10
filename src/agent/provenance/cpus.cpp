// The model of the processors and their number, of /proc/cpuinfo.
#include <set>

#include "src/agent/provenance/facts.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {

Json find_cpus() {
  const auto text = read_file("/proc/cpuinfo");
  if (!text) return nullptr;
  std::string model;
  std::set<std::string> sockets;
  std::size_t processors = 0;
  for (const std::string& line : split(*text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto name = trim(std::string_view(line).substr(0, colon));
    const auto value = trim(std::string_view(line).substr(colon + 1));
    if (name == "processor") ++processors;
    // As x86, POWER and s390 name it; ARM's kernel has numbers alone.
    if (model.empty() && (name == "model name" || name == "cpu" || name == "CPU part")) model = value;
    if (name == "physical id") sockets.emplace(value);
  }
  return {{"model", model.empty() ? Json(nullptr) : Json(model)},
          {"sockets", sockets.empty() ? Json(nullptr) : Json(sockets.size())},
          {"processors", processors}};
}

}  // namespace dlrun::agent
