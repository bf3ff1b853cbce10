// Random numbers without a state: each is a pure function of a key (seed, step, layer, sample, ...), so that
// any rank, any thread and a resumed run draw the same ones, and nothing has to be saved. Not for secrets.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

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

// One key from several parts, in their order.
constexpr std::uint64_t random_key(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t key = 0;
  for (const std::uint64_t part : parts) key = mix(key ^ mix(part));
  return key;
}

constexpr std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = text.size();
  for (const char letter : text) hash = mix(hash ^ static_cast<unsigned char>(letter));
  return hash;
}

// A number in [0, bound) from 64 random bits.
constexpr std::uint64_t below(std::uint64_t random, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(random) * bound) >> 64);
}

}  // namespace dlrun::runtime
