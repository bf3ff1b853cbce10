// NumberType: what the numbers of an array are, and their conversion to floats. All are little-endian; what
// is not is refused where a header is read.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace dlrun::runtime {

enum class NumberType { float16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64, uint64 };

/// As NumPy calls it: "float32".
std::string_view name_of(NumberType type);
std::size_t bytes_of(NumberType type);
/// Of NumPy's letter and number of bytes: 'f' and 4. Unset where it is another.
std::optional<NumberType> number_type(char kind, std::size_t bytes);

/// As many numbers as `out` has, from any address.
void to_floats(NumberType type, std::span<const std::byte> from, std::span<float> out);
void to_doubles(NumberType type, std::span<const std::byte> from, std::span<double> out);

}  // namespace dlrun::runtime
