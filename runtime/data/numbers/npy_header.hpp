// The header of NumPy's format .npy, versions 1 to 3: a Python dictionary of three keys. It is read strictly:
// big-endian numbers, Fortran's order, records and objects are refused with what to do about them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/numbers/number_type.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

/// The bytes that tell how long a header is.
inline constexpr std::size_t kNpyPrefix = 12;

struct NpyHeader {
  NumberType type = NumberType::float32;
  std::vector<std::uint64_t> shape;  // empty of a single number
  std::uint64_t numbers = 1;
  std::size_t length = 0;  // of the header: the numbers follow

  std::uint64_t bytes() const { return length + numbers * bytes_of(type); }
};

/// The length of the header that begins with `prefix`, of kNpyPrefix bytes.
Result<std::size_t> npy_header_length(std::span<const std::uint8_t> prefix, const std::string& name);
/// `header`: all of it.
Result<NpyHeader> parse_npy_header(std::span<const std::uint8_t> header, const std::string& name);

}  // namespace dlrun::runtime
