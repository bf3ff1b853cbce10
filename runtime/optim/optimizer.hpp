// Optimizer: how gradients change parameters. OptimizerTraits is a row of the table: the optimizer's name,
// what a job file may set, the tensors of state that each parameter has, the factors of one update, and the
// CPU's kernel. Engines, checkpoints and job files read the row: none of them knows an optimizer by name.
// What an optimizer does not do: choose the learning rate (train/schedule.hpp), sum gradients over ranks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/simd.hpp"
#include "runtime/optim/factors.hpp"

namespace dlrun::runtime {

/// What every optimizer is told about one update.
struct UpdateStep {
  float learning_rate = 0;
  float weight_decay = 0;
  float gradient_scale = 1;   // 1 / ranks after a summing allreduce
  std::uint64_t updates = 0;  // made before this one
};

/// A number that a job file may set beside the learning rate and the weight decay. A flag is true or false
/// there, and 1 or 0 here.
struct Hyperparameter {
  enum class Kind { number, flag };
  std::string_view name;  // the key in the job file
  double fallback, lowest, highest;
  Kind kind = Kind::number;
};

inline constexpr std::size_t kMaxHyperparameters = 4;
using Hyperparameters = std::array<double, kMaxHyperparameters>;  // in the order of the row

/// Consecutive numbers of one parameter: its values, its gradients and its state, slot by slot.
struct UpdateRange {
  float* values;
  const float* gradients;
  std::array<float*, kMaxStateSlots> state;
  std::size_t count;
};

/// A bf16 copy of rows of f32, two rows interleaved; see kernels::interleave.
struct InterleavedCopy {
  kernels::Bf16* data;
  std::size_t row;  // floats
};

/// Two sums over a tensor, of squares or what the optimizer needs.
using TensorSums = std::array<double, 2>;

/// What an optimizer does that looks at a whole tensor before it changes a number of it.
struct TensorPass {
  // The factors of a tensor of one dimension: a bias, or one of batch norm's.
  Factors (*of_vector)(const Factors& factors);
  // A first pass, which may leave state for the second. Sums of parts are added up.
  TensorSums (*measure)(const UpdateRange& range, const Factors& factors);
  // The factors of the second pass, which is OptimizerTraits::update.
  Factors (*adapt)(const Factors& factors, const TensorSums& sums);
};

/// For first passes: the sums of term(i) for i below `count`, sixteen side by side.
template <class Term>
TensorSums sums_of(std::size_t count, const Term& term) {
  std::array<TensorSums, kernels::kLanes> lanes{};
  for (std::size_t i = 0; i < count; ++i) {
    const TensorSums one = term(i);
    lanes[i % kernels::kLanes][0] += one[0];
    lanes[i % kernels::kLanes][1] += one[1];
  }
  TensorSums out{};
  for (const TensorSums& lane : lanes) out[0] += lane[0], out[1] += lane[1];
  return out;
}

struct OptimizerTraits {
  std::string_view name;
  double learning_rate;  // where the job file gives none
  std::vector<Hyperparameter> hyperparameters;
  std::vector<std::string_view> state;  // suffixes of the state's names: PyTorch's names
  Factors (*factors)(const UpdateStep& step, const Hyperparameters& of);
  void (*update)(const UpdateRange& range, const Factors& factors);
  // The same, and writes the copy in the same pass; null where the engine is to refresh it by itself.
  void (*update_and_interleave)(const UpdateRange& range, const InterleavedCopy& copy,
                                const Factors& factors);
  const TensorPass* tensor_pass = nullptr;  // null: an update looks at each number alone
  double weight_decay = 0;                  // where the job file gives none
  // Why these do not go together, for people; empty if they do.
  std::string_view (*conflict)(const Hyperparameters& of) = nullptr;
};

/// All of them, in the order of list.hpp.
const std::vector<const OptimizerTraits*>& optimizers();
/// Null where no optimizer has that name.
const OptimizerTraits* find_optimizer(std::string_view name);

/// An optimizer with its numbers.
struct Optimizer {
  const OptimizerTraits* traits;
  Hyperparameters values{};

  Factors factors(const UpdateStep& step) const { return traits->factors(step, values); }
  /// Name and numbers: what all ranks of a job must have in common.
  std::string identity() const;
};

/// With the numbers that a job file need not give.
Optimizer default_optimizer(std::string_view name);
/// w = w - lr v with v = momentum v + (scale g + decay w).
Optimizer momentum_sgd(double momentum);

}  // namespace dlrun::runtime
