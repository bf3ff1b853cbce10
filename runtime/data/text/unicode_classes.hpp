// Which codes of a UTF-8 text are letters, numbers or white space, as regular expressions have \p{L}, \p{N}
// and \s.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dlrun::runtime {

enum class CodeClass { letter, number, space, other };

struct DecodedCode {
  char32_t code = 0;
  std::size_t bytes = 1;
};
struct ClassedCode {
  CodeClass kind = CodeClass::other;
  std::size_t bytes = 1;
};

/// The first code of a text that is not empty; empty where its bytes are no UTF-8.
std::optional<DecodedCode> decode_utf8(std::string_view text);
/// Its class; a byte that is no UTF-8 is a code of its own, and `other`.
ClassedCode first_class(std::string_view text);

}  // namespace dlrun::runtime
