#include "runtime/train/make_cpu_engine.hpp"

#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

Result<std::unique_ptr<Engine>> make_cpu_engine(const std::string& model, const InputShape& input,
                                                const EngineOptions& options) {
  return TRY(compile(TRY(build_model(model, input)), options));
}

}  // namespace dlrun::runtime
