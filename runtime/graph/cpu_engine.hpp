// CpuEngine: runs a compiled plan on the CPU. Also gives reports what the Engine interface has no word for:
// the time of each operator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

// One line of a step's time, for tables.
struct OperatorTime {
  std::string name;       // "conv1", or the operation's name
  std::string phase;      // "forward", "weights", "data", "settle", "update"
  double seconds = 0;     // of processor time, all threads together
  double operations = 0;  // floating point
  std::string description;
};

class CpuEngine : public Engine {
 public:
  // One training step and update, each part on the clock.
  virtual std::vector<OperatorTime> profile_step(std::uint64_t step) = 0;
};

// Whether this processor has instructions for it; without them a bf16 is computed, and f32 is faster.
bool is_native(Precision precision);

// Compiles any graph. An Error where oneDNN cannot do it or memory is short.
Result<std::unique_ptr<CpuEngine>> compile(Graph graph, const EngineOptions& options);

}  // namespace dlrun::runtime
