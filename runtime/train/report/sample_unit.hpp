// What rates count: images, or the tokens of sequences.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/base/input_shape.hpp"

namespace dlrun::runtime {

struct SampleUnit {
  std::string_view name = "images";
  double per_sample = 1;

  /// As metrics and results have it: "images_per_s".
  std::string key() const { return fmt::format("{}_per_s", name); }
};

inline SampleUnit unit_of(const InputShape& shape) {
  if (shape.kind == SampleKind::tokens) return {"tokens", static_cast<double>(shape.height)};
  return {};
}

}  // namespace dlrun::runtime
