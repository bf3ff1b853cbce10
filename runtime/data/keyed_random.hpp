// Numbers that are a pure function of their key: what is random in data (order, augmentation, synthetic
// pixels) can be asked for at any place again, on any rank, without a state that would have to be saved.
#pragma once

#include <cstdint>

namespace dlrun::runtime {

// A 64-bit mixer (the finaliser of splitmix64): each output bit depends on every input bit.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

constexpr std::uint64_t mix(std::uint64_t key, std::uint64_t value) {
  return mix(mix(key) ^ value);
}

template <class... More>
constexpr std::uint64_t mix(std::uint64_t key, std::uint64_t value, std::uint64_t next, More... more) {
  return mix(mix(key, value), next, more...);
}

// A number in [0, bound) from 64 random bits.
constexpr std::uint64_t below(std::uint64_t random, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(random) * bound) >> 64);
}

}  // namespace dlrun::runtime
