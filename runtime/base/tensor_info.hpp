// TensorInfo: a named tensor of a model's state, as checkpoints and tests see it: name, shape and role, no
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/tensor_box.hpp"

namespace dlrun::runtime {

// A named tensor of the model's state in its plain, framework-neutral layout (convolution weights OIHW, fully
// connected OUT x IN), as checkpoints and tests see it. Names are PyTorch's: "conv1.weight",
// "bn1.running_mean"; momentum is "conv1.weight.momentum", Adam's means are "conv1.weight.exp_avg" and
// "conv1.weight.exp_avg_sq".
struct TensorInfo {
  enum class Role { parameter, statistic, momentum };  // statistic: batch norm's running mean and variance
  std::string name;
  TensorShape shape;  // of the whole tensor, also where it is divided among ranks
  Role role = Role::parameter;
  // What this rank has of it: box by box, as Engine::read_tensor gives them. Unset: all of it.
  std::optional<std::vector<TensorBox>> held = {};
  // Which ranks have the same boxes, with equal numbers. earlier_stage: a stage before has it, too.
  enum class HeldBy { one_rank, data_group, tensor_group, earlier_stage };
  HeldBy held_by = HeldBy::one_rank;

  /// The boxes, of which the whole tensor may be the only one.
  std::vector<TensorBox> boxes() const;
  /// Numbers that this rank has.
  std::size_t elements() const;
};

}  // namespace dlrun::runtime
