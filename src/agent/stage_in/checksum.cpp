#include "src/agent/stage_in/checksum.hpp"

#include <fmt/core.h>

#define XXH_INLINE_ALL  // no library that a node might lack
#include <xxhash.h>

namespace dlrun::agent {

struct Checksum::State {
  XXH3_state_t hash;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->hash);
}

Checksum::~Checksum() = default;

void Checksum::add(std::string_view bytes) {
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const {
  return XXH3_128bits_digest(&state_->hash).low64;
}

std::string Checksum::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace dlrun::agent
