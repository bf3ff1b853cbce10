// NoDecay: the parameters whose weights do not decay: those of one dimension (biases, and those of norms),
// and those of some names. Both devices ask it, so that they agree.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/name_pattern.hpp"

namespace dlrun::runtime {

struct NoDecay {
  enum class Vectors { decay, exempt };
  Vectors vectors = Vectors::decay;
  std::vector<std::string> names = {};  // patterns

  bool covers(const std::string& name, const std::vector<std::int64_t>& shape) const {
    return (vectors == Vectors::exempt && shape.size() == 1) || matches_any(names, name);
  }
  /// As a job file lists them: "vectors head.*", or "none".
  std::string text() const {
    std::string out = vectors == Vectors::exempt ? "vectors" : "";
    for (const std::string& pattern : names) out += (out.empty() ? "" : " ") + pattern;
    return out.empty() ? "none" : out;
  }
};

}  // namespace dlrun::runtime
