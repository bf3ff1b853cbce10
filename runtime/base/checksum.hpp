// XXH3 of whole files: finds torn and flipped bytes at memory speed. No protection against intent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dlrun::runtime {

std::uint64_t checksum(std::span<const std::byte> content);
std::uint64_t checksum(std::string_view text);
std::string hex(std::uint64_t value);  // 16 digits

}  // namespace dlrun::runtime
