// A graph against PyTorch: same weights, images or tokens, labels and dropout mask; then the losses, the
// running statistics and every gradient are compared by pytorch_oracle.py. Python and its torch must be
// there: without them these tests fail.
#pragma once

#include "fixture.hpp"

namespace dlrun::runtime::test {

enum class Start { initial, scrambled };

// f32: sums in another order than the exact ones. A whole ResNet has a million ReLUs, and one of them whose
// input is 0 but for rounding may fall to the other side: PyTorch's own f32 is up to 1.3 % off its double
// there, too. bf16 is held to PyTorch's own bf16 (see the script).
inline constexpr double kTight = 2e-4, kOneReluApart = 2e-2, kRounded = 3e-2;

// Where there are steps, as many of plain SGD follow, whose losses and last parameters are compared too.
void check_against_pytorch(const Graph& graph, const Batch& batch, Precision precision, double tolerance,
                           Start start, int sgd_steps = 0);

}  // namespace dlrun::runtime::test
