// OperatorTime: where the time of a step went, operator by operator, whatever the device.
#pragma once

#include <string>

namespace dlrun::runtime {

// One line of a step's time, for tables.
struct OperatorTime {
  std::string name;       // "conv1", or the operation's name
  std::string phase;      // "forward", "weights", "data", "finalize", "update"
  double seconds = 0;     // of processor time, all threads together
  double operations = 0;  // floating point
  std::string description = {};
  double bytes = 0;  // of activations and their gradients, each read or written once
};

}  // namespace dlrun::runtime
