// The models of the GPUs, and the versions of their driver and of the newest CUDA that it serves, as NVML
// tells.
#include "schedulers/gpus/nvml.hpp"
#include "src/agent/provenance/facts.hpp"

namespace dlrun::agent {

Json find_gpus() {
  const auto models = ask_nvml_models();
  if (!models) return nullptr;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  return {{"models", models->models}, {"driver", or_null(models->driver)}, {"cuda", or_null(models->cuda)}};
}

}  // namespace dlrun::agent
