#include "runtime/engine/random_keys.hpp"

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {

DropoutRule dropout_rule(const EngineOptions& options, std::size_t layer, std::uint64_t step,
                         float probability) {
  const auto rank = static_cast<std::uint64_t>(options.rank);
  return {random_key({options.seed, hash_text("dropout"), rank, layer, step}), probability};
}

std::uint64_t noise_key(const EngineOptions& options, std::uint64_t step) {
  return random_key({options.seed, hash_text("noise"), step});
}

}  // namespace dlrun::runtime
