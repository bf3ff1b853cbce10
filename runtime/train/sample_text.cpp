// See sample_text.hpp.
#include "runtime/train/sample_text.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {
namespace {

// In [0, 1).
double drawn(std::uint64_t seed, std::uint64_t position) {
  return static_cast<double>(mix(seed, 0x73616d706c65u, position) >> 11) * 0x1p-53;
}

// The numbers of the best scores, in their order; of two equal ones the lower number is better.
std::vector<std::uint32_t> best_of(std::span<const float> scores, std::size_t count) {
  std::vector<std::uint32_t> out(scores.size());
  std::iota(out.begin(), out.end(), 0U);
  if (count == 0 || count >= out.size()) return out;
  std::nth_element(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), out.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                   });
  out.resize(count);
  std::sort(out.begin(), out.end());
  return out;
}

Result<LanguageEngine*> language_of(Engine& engine) {
  if (engine.language() != nullptr) return engine.language();
  return fail(ErrorKind::internal, "the engine of a language model gives no scores of a next token");
}

}  // namespace

std::uint32_t draw_token(std::span<const float> scores, const SampleOptions& options,
                         std::uint64_t position) {
  const auto best = std::max_element(scores.begin(), scores.end());
  if (options.temperature <= 0) return static_cast<std::uint32_t>(best - scores.begin());
  const std::vector<std::uint32_t> tokens = best_of(scores, options.top_k);
  std::vector<double> sums;
  double sum = 0;
  for (const std::uint32_t token : tokens)
    sums.push_back(sum += std::exp((static_cast<double>(scores[token]) - *best) / options.temperature));
  const auto found = std::upper_bound(sums.begin(), sums.end(), drawn(options.seed, position) * sum);
  return tokens[std::min(static_cast<std::size_t>(found - sums.begin()), tokens.size() - 1)];
}

Result<Tokenizer::Tokens> continue_tokens(Engine& engine, Tokenizer::Tokens tokens,
                                          const SampleOptions& options, std::uint64_t words,
                                          std::optional<std::uint32_t> end) {
  LanguageEngine& language = *TRY(language_of(engine));
  std::vector<float> scores(static_cast<std::size_t>(language.vocabulary()));
  for (std::size_t i = 0; i < options.length; ++i) {
    const std::span<std::int32_t> row = engine.tokens();
    const std::size_t seen = std::min(tokens.size(), row.size());
    std::copy(tokens.end() - static_cast<std::ptrdiff_t>(seen), tokens.end(), row.begin());
    std::fill(row.begin() + static_cast<std::ptrdiff_t>(seen), row.end(), 0);  // no position looks ahead
    std::fill(engine.labels().begin(), engine.labels().end(), -1);
    engine.evaluate_batch();
    TRY(engine.status());
    TRY(language.next_scores(static_cast<std::int64_t>(seen) - 1, scores));
    const auto of_words = std::span(scores).first(std::min<std::size_t>(scores.size(), words));
    const std::uint32_t next = draw_token(of_words, options, tokens.size());
    if (next == end) break;
    tokens.push_back(next);
  }
  return tokens;
}

Result<std::string> sample_text(const SavedModel& model, const std::string& text,
                                const SampleOptions& options) {
  const Tokenizer tokenizer = TRY(model.tokenizer());
  Tokenizer::Tokens tokens = tokenizer.encode(text);
  const std::optional<std::uint32_t> end = tokenizer.end_of_text();
  if (tokens.empty()) tokens.push_back(end.value_or(0));
  const auto positions = static_cast<std::int64_t>(tokens.size() + options.length);
  const std::unique_ptr<Engine> engine = TRY(model.make_language_engine(1, positions));
  const std::size_t given = tokens.size();
  const Tokenizer::Tokens all =
      TRY(continue_tokens(*engine, std::move(tokens), options, tokenizer.vocabulary(), end));
  return text + tokenizer.decode(std::span(all).subspan(given));
}

}  // namespace dlrun::runtime
