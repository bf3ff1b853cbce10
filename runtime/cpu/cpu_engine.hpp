// CpuEngine: runs a compiled plan on the CPU. Also gives reports what the Engine interface has no word for:
// the time of each operator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/engine/engine.hpp"
#include "runtime/engine/operator_time.hpp"
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

class CpuEngine : public Engine {
 public:
  // One training step and update, each part on the clock.
  virtual std::vector<OperatorTime> profile_step(std::uint64_t step) = 0;
};

// Whether this processor has instructions for it; without them a bf16 is computed, and f32 is faster.
bool is_native(Precision precision);

/// Whether it can be computed here at all: oneDNN computes bf16 with AVX-512 only.
bool can_compute(Precision precision);

// Compiles any graph. An Error where oneDNN cannot do it or memory is short.
Result<std::unique_ptr<CpuEngine>> compile(Graph graph, const EngineOptions& options);

}  // namespace dlrun::runtime
