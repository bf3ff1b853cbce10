// See token_samples.hpp.
#include "runtime/data/tokens/token_samples.hpp"

namespace dlrun::runtime {

Dataset token_samples(TokenStream stream, std::int64_t context) {
  Dataset out;
  out.shape = token_sequences(context, static_cast<std::int64_t>(stream.vocabulary()));
  out.count = stream.count() == 0 ? 0 : (stream.count() - 1) / static_cast<std::uint64_t>(context);
  out.tokens = std::make_shared<const TokenStream>(std::move(stream));
  return out;
}

}  // namespace dlrun::runtime
