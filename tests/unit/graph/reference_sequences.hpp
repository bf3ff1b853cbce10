// The operators on sequences as plain loops in double, for reference.cpp. A sequence is
// [row][position][feature].
#pragma once

#include "reference.hpp"

namespace dlrun::runtime::test {

Numbers reference_embedding(const std::vector<std::int32_t>& tokens, const Numbers& weights,
                            const Numbers* positions, const Shape& to);
// Over the features of each position; `bias` null: none. RMS norm has no mean.
Numbers reference_norm(Numbers in, const Numbers& weights, const Numbers* bias, double epsilon,
                       bool has_mean);
Numbers reference_linear(const Numbers& in, const Numbers& weights, const Numbers* bias, std::int64_t inputs);
Numbers reference_swiglu(const Numbers& gate, const Numbers& up);
Numbers reference_attention(const Numbers& in, const op::Attention& spec, const Shape& from,
                            std::int64_t rows);
// The scores of all positions.
Numbers reference_scores(const Numbers& in, const Numbers& weights, std::int64_t features);

}  // namespace dlrun::runtime::test
