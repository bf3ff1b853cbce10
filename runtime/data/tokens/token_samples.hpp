// A part of a data set whose samples are windows of a stream of tokens: number i is the tokens from
// i * context on, `context` of them, and its labels are those one position further.
#pragma once

#include "runtime/data/dataset.hpp"

namespace dlrun::runtime {

inline constexpr std::int64_t kMaxContext = std::int64_t{1} << 20;
inline constexpr const char* kTokenizerFile = "tokenizer.json";  // beside token files

/// What is left over at the end, less than a window, is not used.
Dataset token_samples(TokenStream stream, std::int64_t context);

}  // namespace dlrun::runtime
