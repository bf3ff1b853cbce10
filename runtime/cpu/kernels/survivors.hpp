// Which elements survive dropout, 16 at a time: two rounds of a 32-bit finaliser of the element's number,
// each keyed by half of the key.
#pragma once

#include "runtime/cpu/kernels/kernels.hpp"
#include "runtime/cpu/kernels/lanes.hpp"

namespace dlrun::runtime::kernels {

class Survivors {
 public:
  DLRUN_INLINE explicit Survivors(const DropoutRule& rule)
      : low_(static_cast<std::uint32_t>(rule.key)),
        high_(static_cast<std::uint32_t>(rule.key >> 32)),
        dies_below_(static_cast<std::uint32_t>(static_cast<double>(rule.probability) * 4294967295.0)),
        scale_(1.0F / (1.0F - rule.probability)) {}

  /// Elements from number `first` on: 0, or times 1 / (1 - probability).
  DLRUN_INLINE void drop(Floats16& value, std::uint32_t first) const {
    Words16 bits{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    bits = (bits + first) ^ low_;
    bits = (bits ^ (bits >> 16)) * 0x7feb352dU;
    bits = (bits ^ (bits >> 15)) * 0x846ca68bU;
    bits = (bits ^ (bits >> 16)) + high_;
    bits = (bits ^ (bits >> 16)) * 0x21f0aaadU;
    bits = (bits ^ (bits >> 15)) * 0x735a2d97U;
    bits = bits ^ (bits >> 15);
    const Floats16 zero{};
    value = bits >= dies_below_ ? value * scale_ : zero;
  }

 private:
  std::uint32_t low_, high_, dies_below_;
  float scale_;
};

}  // namespace dlrun::runtime::kernels
