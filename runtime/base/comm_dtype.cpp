// See comm_dtype.hpp. Sixteen numbers at a time; what is left over goes through a padded block of its own.
#include "runtime/base/comm_dtype.hpp"

#include <cstring>

#include "runtime/base/simd.hpp"

namespace dlrun::runtime {
namespace {

using kernels::Bf16;
using kernels::Floats16;
using kernels::Halves16;
using kernels::Ints16;
using kernels::Words16;

constexpr std::size_t lanes = 16;

// The same bits as another type; through references, as simd.hpp has it.
template <class To, class From>
DLRUN_INLINE void view(To& to, const From& from) {
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
}

// Lane by lane: `other` where the mask is set.
DLRUN_INLINE void replace(Words16& value, const Ints16& mask, const Words16& other) {
  Words16 set;
  view(set, mask);
  value = (other & set) | (value & ~set);
}

struct F16 {
  std::uint16_t bits;
};

// The floating-point unit rounds subnormals: adding 0.5 pushes their bits into place. For the others the
// exponent is moved and half a step added to the bits that go.
DLRUN_INLINE void store(F16* to, const Floats16& from) {
  Words16 all, half = Words16{} + 0x3f000000U;
  view(all, from);
  const Words16 sign = all & 0x80000000U, bits = all ^ sign;
  Floats16 small, shift;
  view(small, bits);
  view(shift, half);
  small += shift;
  Words16 subnormal, infinite = Words16{} + 0x7c00U;
  view(subnormal, small);
  Words16 halves = (bits - 0x38000000U + 0xfffU + ((bits >> 13) & 1U)) >> 13;
  replace(halves, bits < 0x38800000U, subnormal - half);
  replace(infinite, bits > 0x7f800000U, Words16{} + 0x7e00U);
  replace(halves, bits >= 0x47800000U, infinite);
  const Halves16 narrow = __builtin_convertvector(halves | (sign >> 16), Halves16);
  std::memcpy(static_cast<void*>(to), &narrow, sizeof narrow);
}

DLRUN_INLINE void load(Floats16& to, const F16* from) {
  Halves16 narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  const Words16 all = __builtin_convertvector(narrow, Words16);
  const Words16 bits = (all & 0x7fffU) << 13, exponent = bits & 0x0f800000U;
  const Words16 smallest = Words16{} + 0x38800000U;
  Floats16 small, shift;
  view(small, bits + smallest);
  view(shift, smallest);
  small -= shift;
  Words16 subnormal, result = bits + 0x38000000U;
  view(subnormal, small);
  replace(result, exponent == 0x0f800000U, bits + 0x70000000U);
  replace(result, exponent == 0U, subnormal);
  view(to, result | ((all & 0x8000U) << 16));
}

using kernels::load;
using kernels::store;

template <class Short>
DLRUN_INLINE void pack_all(Short* to, const float* from, std::size_t count) {
  Floats16 block;
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    load(block, from + at);
    store(to + at, block);
  }
  if (at == count) return;
  float rest[lanes] = {};
  Short packed[lanes];
  std::memcpy(rest, from + at, (count - at) * sizeof(float));
  load(block, rest);
  store(packed, block);
  std::memcpy(static_cast<void*>(to + at), packed, (count - at) * sizeof(Short));
}

enum class Into { replace, add };

template <Into how, class Short>
DLRUN_INLINE void unpack_all(float* to, const Short* from, std::size_t count) {
  Floats16 block, sum;
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    load(block, from + at);
    if constexpr (how == Into::add) {
      load(sum, to + at);
      block += sum;
    }
    store(to + at, block);
  }
  if (at == count) return;
  Short packed[lanes] = {};
  float rest[lanes] = {};
  std::memcpy(static_cast<void*>(packed), from + at, (count - at) * sizeof(Short));
  load(block, packed);
  if constexpr (how == Into::add) {
    std::memcpy(rest, to + at, (count - at) * sizeof(float));
    load(sum, rest);
    block += sum;
  }
  store(rest, block);
  std::memcpy(to + at, rest, (count - at) * sizeof(float));
}

DLRUN_VERSIONS void pack_bf16(Bf16* to, const float* from, std::size_t count) {
  pack_all(to, from, count);
}
DLRUN_VERSIONS void pack_f16(F16* to, const float* from, std::size_t count) {
  pack_all(to, from, count);
}
DLRUN_VERSIONS void unpack_bf16(float* to, const Bf16* from, std::size_t count) {
  unpack_all<Into::replace>(to, from, count);
}
DLRUN_VERSIONS void unpack_f16(float* to, const F16* from, std::size_t count) {
  unpack_all<Into::replace>(to, from, count);
}
DLRUN_VERSIONS void add_f32(float* to, const float* from, std::size_t count) {
  unpack_all<Into::add>(to, from, count);
}
DLRUN_VERSIONS void add_bf16(float* to, const Bf16* from, std::size_t count) {
  unpack_all<Into::add>(to, from, count);
}
DLRUN_VERSIONS void add_f16(float* to, const F16* from, std::size_t count) {
  unpack_all<Into::add>(to, from, count);
}

}  // namespace

std::string_view name_of(CommDtype dtype) {
  switch (dtype) {
    case CommDtype::bf16:
      return "bf16";
    case CommDtype::f16:
      return "f16";
    case CommDtype::f32:
      break;
  }
  return "f32";
}

std::size_t bytes_of(CommDtype dtype, std::size_t count) {
  return count * (dtype == CommDtype::f32 ? sizeof(float) : sizeof(std::uint16_t));
}

void pack(CommDtype dtype, std::byte* to, const float* from, std::size_t count) {
  if (dtype == CommDtype::f32)
    std::memcpy(to, from, count * sizeof(float));
  else if (dtype == CommDtype::bf16)
    pack_bf16(reinterpret_cast<Bf16*>(to), from, count);
  else
    pack_f16(reinterpret_cast<F16*>(to), from, count);
}

void unpack(CommDtype dtype, float* to, const std::byte* from, std::size_t count) {
  if (dtype == CommDtype::f32)
    std::memcpy(to, from, count * sizeof(float));
  else if (dtype == CommDtype::bf16)
    unpack_bf16(to, reinterpret_cast<const Bf16*>(from), count);
  else
    unpack_f16(to, reinterpret_cast<const F16*>(from), count);
}

void add_unpacked(CommDtype dtype, float* sum, const std::byte* more, std::size_t count) {
  if (dtype == CommDtype::f32)
    add_f32(sum, reinterpret_cast<const float*>(more), count);
  else if (dtype == CommDtype::bf16)
    add_bf16(sum, reinterpret_cast<const Bf16*>(more), count);
  else
    add_f16(sum, reinterpret_cast<const F16*>(more), count);
}

void pack_rounding(CommDtype dtype, std::byte* to, float* data, std::size_t count) {
  pack(dtype, to, data, count);
  if (dtype != CommDtype::f32) unpack(dtype, data, to, count);
}

}  // namespace dlrun::runtime
