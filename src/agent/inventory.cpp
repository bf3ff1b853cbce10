#include "src/agent/inventory.hpp"

#include "schedulers/gpus/gpus.hpp"
#include "src/agent/binding.hpp"
#include "src/agent/provenance/facts.hpp"
#include "src/base/json.hpp"

namespace dlrun::agent {

plan::NodeInventory take_inventory(const Environment& environment, Gpus gpus) {
  plan::NodeInventory out;
  if (const auto processors = usable_processors(); processors && !processors->empty())
    out.cpus = static_cast<int>(processors->size());
  if (const Json cpus = find_cpus(); cpus.is_object())
    out.cpu_model = field<std::string>(cpus, "model", "/proc/cpuinfo").value_or("");
  if (gpus == Gpus::not_asked) return out;
  FoundGpus found = dlrun::usable_gpus(gpus_of_driver(environment), environment);
  out.gpus = std::move(found.names);
  out.gpu_source = std::move(found.evidence);
  out.gpu_vendor = found.vendor;
  return out;
}

}  // namespace dlrun::agent
