// See crc32c.hpp.
#include "runtime/base/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace dlrun::runtime {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

std::uint32_t crc_by_table(std::uint32_t crc, std::string_view data) {
  for (const char byte : data) crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc_by_instruction(std::uint32_t crc, std::string_view data) {
  std::uint64_t wide = crc;
  for (; data.size() >= 8; data.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data(), sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  return crc_by_table(static_cast<std::uint32_t>(wide), data);
}
#endif

}  // namespace

std::uint32_t crc32c(std::string_view data) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") != 0) return ~crc_by_instruction(0xffffffffu, data);
#endif
  return ~crc_by_table(0xffffffffu, data);
}

std::uint32_t masked_crc32c(std::string_view data) {
  const std::uint32_t crc = crc32c(data);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

}  // namespace dlrun::runtime
