// When each value and gradient of a plan is needed in a training step. What is never needed at the same time
// may lie in the same memory (engine/packing.hpp). Time counts the operators: forward is 0 to n - 1, backward
// n to 2 n - 1. Pure arithmetic on the plan: no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/cuda/table.h"
#include "runtime/engine/packing.hpp"

namespace dlrun::cuda {

using runtime::Lifetime;

// The last node of the forward pass that reads `index`; itself where nobody does.
std::size_t last_reader(const DlrunCudaPlan& plan, std::size_t index);
// The first one.
std::size_t first_reader(const DlrunCudaPlan& plan, std::size_t index);

// Of offsets: what every library and kernel asks of an address.
constexpr std::size_t kPackingAlignment = 256;

// When the value, or the gradient, of each node of the plan is needed in training; 0 bytes where there is
// none.
std::vector<Lifetime> value_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size);
std::vector<Lifetime> gradient_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size);
// The same of values that are made again for the way back, in memory of their own.
std::vector<Lifetime> restored_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size);
// The node in whose gradient's memory that of each node lies: itself, but for the inputs of sums that pass
// it.
std::vector<std::size_t> gradient_holders(const DlrunCudaPlan& plan);

}  // namespace dlrun::cuda
