// Which values and gradients of a plan may lie in the same memory: those that are never needed at the same
// time of a training step. Pure arithmetic on the plan: no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/cuda/table.h"

namespace dlrun::cuda {

// Needed from the operator that writes it first to the one that reads it last, both inclusive. Operators
// count on from the forward pass (0 to n - 1) to backward (n to 2 n - 1).
struct Lifetime {
  std::size_t bytes = 0, first = 0, last = 0;
};

// The last node of the forward pass that reads `index`; itself where nobody does.
std::size_t last_reader(const DlrunCudaPlan& plan, std::size_t index);

struct Placement {
  std::vector<std::size_t> offsets;  // of each lifetime, multiples of 256
  std::size_t bytes = 0;             // of all together
};
Placement place(const std::vector<Lifetime>& lifetimes);

// When the value, or the gradient, of each node of the plan is needed in training; 0 bytes where there is
// none.
std::vector<Lifetime> value_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size);
std::vector<Lifetime> gradient_lifetimes(const DlrunCudaPlan& plan, std::size_t number_size);

}  // namespace dlrun::cuda
