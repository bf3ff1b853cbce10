// Sampling: a language model continues a text, token by token. What is drawn is a function of the seed and of
// how many tokens there are, so that the same command prints the same text.
#pragma once

#include "runtime/data/text/tokenizer.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/train/saved_model.hpp"

namespace dlrun::runtime {

struct SampleOptions {
  std::size_t length = 200;  // tokens
  double temperature = 1;    // 0: always the best token
  std::size_t top_k = 0;     // only the best ones are drawn from; 0: from all
  std::uint64_t seed = 1;
};

/// The token to put behind `position` others, by the scores of all.
std::uint32_t draw_token(std::span<const float> scores, const SampleOptions& options, std::uint64_t position);

/// Continues tokens, at least one, until `end` or for `options.length` more. The engine has a batch of one
/// row, and sees as many of the last tokens as it has positions. Tokens from `words` on are never drawn.
Result<Tokenizer::Tokens> continue_tokens(Engine& engine, Tokenizer::Tokens tokens,
                                          const SampleOptions& options, std::uint64_t words,
                                          std::optional<std::uint32_t> end);

/// The text, and what the model makes of it.
Result<std::string> sample_text(const SavedModel& model, const std::string& text,
                                const SampleOptions& options);

}  // namespace dlrun::runtime
