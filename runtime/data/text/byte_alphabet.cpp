// See byte_alphabet.hpp.
#include "runtime/data/text/byte_alphabet.hpp"

#include <array>
#include <cstdint>

#include "runtime/data/text/unicode_classes.hpp"

namespace dlrun::runtime {
namespace {

constexpr char32_t kFirstOfOthers = 0x100;

constexpr bool is_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<char32_t, 256> codes{};
  std::array<std::int16_t, 2 * 256> bytes{};  // by code; -1 where there is none
};

constexpr Alphabet make_alphabet() {
  Alphabet out;
  for (std::int16_t& byte : out.bytes) byte = -1;
  char32_t other = kFirstOfOthers;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t code = is_itself(byte) ? byte : other++;
    out.codes[byte] = code;
    out.bytes[code] = static_cast<std::int16_t>(byte);
  }
  return out;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string alphabet_of_bytes(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const char32_t code = kAlphabet.codes[static_cast<unsigned char>(c)];
    if (code < 0x80) {
      out.push_back(static_cast<char>(code));
    } else {
      out.push_back(static_cast<char>(0xc0U | code >> 6));
      out.push_back(static_cast<char>(0x80U | (code & 0x3fU)));
    }
  }
  return out;
}

std::optional<std::string> bytes_of_alphabet(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto decoded = decode_utf8(text);
    if (!decoded || decoded->code >= kAlphabet.bytes.size()) return std::nullopt;
    const std::int16_t byte = kAlphabet.bytes[decoded->code];
    if (byte < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    text.remove_prefix(decoded->bytes);
  }
  return out;
}

}  // namespace dlrun::runtime
