// GPT-2's alphabet of bytes: each byte as one printable character, in which vocabularies are written. Bytes
// that are printable in Latin-1 are themselves; the others are the characters from U+0100 on, in order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlrun::runtime {

std::string alphabet_of_bytes(std::string_view bytes);
/// Empty where a character is of no byte.
std::optional<std::string> bytes_of_alphabet(std::string_view text);

}  // namespace dlrun::runtime
