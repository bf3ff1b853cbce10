// Splits a text into the words between which byte pairs are never merged: GPT-2's regular expression
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// by hand. Every byte of the text is in one word, also of a text that is no UTF-8.
#pragma once

#include <string_view>

namespace dlrun::runtime {

/// The length in bytes of the first word of a text that is not empty.
std::size_t first_word(std::string_view text);

/// Whether the words stay what they are where the text is cut before `at`, whatever is around: white space
/// begins there, or it ends there and is one code but no blank, or the class of the characters changes.
bool may_cut(std::string_view text, std::size_t at);

}  // namespace dlrun::runtime
