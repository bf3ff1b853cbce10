// See checksum.hpp.
#include "runtime/base/checksum.hpp"

#include <fmt/core.h>
#include <xxhash.h>

namespace dlrun::runtime {

std::uint64_t checksum(std::span<const std::byte> content) {
  return XXH3_64bits(content.data(), content.size());
}

std::uint64_t checksum(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::string hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

}  // namespace dlrun::runtime
