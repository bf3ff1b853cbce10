// TensorInfo: a named tensor of a model's state, as checkpoints and tests see it: name, shape and role, no
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/tensor_part.hpp"

namespace dlrun::runtime {

// A named tensor of the model's state in its plain, framework-neutral layout (convolution weights OIHW, fully
// connected OUT x IN), as checkpoints and tests see it. Names are PyTorch's: "conv1.weight",
// "bn1.running_mean"; momentum is "conv1.weight.momentum", Adam's means are "conv1.weight.exp_avg" and
// "conv1.weight.exp_avg_sq".
struct TensorInfo {
  enum class Role { parameter, statistic, momentum };  // statistic: batch norm's running mean and variance
  std::string name;
  std::vector<std::int64_t> shape;
  Role role = Role::parameter;
  std::optional<TensorPart> of = {};  // the whole tensor, where this is a tensor rank's part of it
  const std::vector<std::int64_t>& whole_shape() const { return of ? of->whole : shape; }
  std::size_t elements() const;
};

}  // namespace dlrun::runtime
