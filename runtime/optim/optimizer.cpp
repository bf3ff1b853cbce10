// See optimizer.hpp.
#include "runtime/optim/optimizer.hpp"

#include <fmt/format.h>

#include "runtime/optim/list.hpp"

namespace dlrun::runtime {

#define DLRUN_DECLARE(NAME) extern const OptimizerTraits& NAME##_traits();
DLRUN_OPTIMIZERS(DLRUN_DECLARE)
#undef DLRUN_DECLARE

const std::vector<const OptimizerTraits*>& optimizers() {
#define DLRUN_ROW(NAME) &NAME##_traits(),
  static const std::vector<const OptimizerTraits*> all{DLRUN_OPTIMIZERS(DLRUN_ROW)};
#undef DLRUN_ROW
  return all;
}

const OptimizerTraits* find_optimizer(std::string_view name) {
  for (const OptimizerTraits* each : optimizers())
    if (each->name == name) return each;
  return nullptr;
}

Optimizer default_optimizer(std::string_view name) {
  Optimizer out{find_optimizer(name)};
  for (std::size_t i = 0; i < out.traits->hyperparameters.size(); ++i)
    out.values[i] = out.traits->hyperparameters[i].fallback;
  return out;
}

std::string Optimizer::identity() const {
  std::string out(traits->name);
  for (std::size_t i = 0; i < traits->hyperparameters.size(); ++i) {
    const Hyperparameter& of = traits->hyperparameters[i];
    if (of.kind == Hyperparameter::Kind::number)
      out += fmt::format(" {}={}", of.name, values[i]);
    else if (values[i] != 0)
      out += fmt::format(" {}", of.name);
  }
  return out;
}

}  // namespace dlrun::runtime
