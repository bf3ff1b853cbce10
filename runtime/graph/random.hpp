// Random numbers without a state: each is a function of a key (seed, step, layer, ...) and of its own index,
// so that any rank, any thread and a resumed run draw the same ones. Not for secrets.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace dlrun::runtime {

// The finaliser of splitmix64: every input bit changes every output bit with probability near 1/2.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
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

}  // namespace dlrun::runtime
