// Drawing tokens: a function of the seed and the position, by temperature and among the best, over a model
// whose scores are known.
#include "runtime/train/sample_text.hpp"

#include <map>

#include <doctest/doctest.h>

#include "tests/unit/train/fake_language_engine.hpp"

namespace dlrun::runtime {
namespace {

using Tokens = Tokenizer::Tokens;

// Of 1000 draws.
std::map<std::uint32_t, int> counts(const std::vector<float>& scores, const SampleOptions& options) {
  std::map<std::uint32_t, int> out;
  for (std::uint64_t position = 0; position < 1000; ++position) ++out[draw_token(scores, options, position)];
  return out;
}

// Scores 5 for the token that follows in the circle of five, 0 for the others.
void teach_circle(Engine& engine) {
  std::vector<float> table(25);
  for (std::size_t i = 0; i < 5; ++i) table[i * 5 + (i + 1) % 5] = 5;
  REQUIRE(engine.write_tensor(0, table));
}

}  // namespace

TEST_CASE("tokens are drawn by their probability, colder ones less often, and only among the best") {
  const std::vector<float> scores = {std::log(1.0F), std::log(2.0F), std::log(5.0F), std::log(2.0F)};
  const auto usual = counts(scores, {});
  CHECK(usual.at(0) == doctest::Approx(100).epsilon(0.3));
  CHECK(usual.at(1) == doctest::Approx(200).epsilon(0.2));
  CHECK(usual.at(2) == doctest::Approx(500).epsilon(0.1));
  const auto cold = counts(scores, {.temperature = 0.5});
  CHECK(cold.at(2) == doctest::Approx(1000.0 * 25 / 34).epsilon(0.1));
  CHECK(counts(scores, {.temperature = 0}).at(2) == 1000);
  const auto two = counts(scores, {.top_k = 2});
  CHECK(two.size() == 2);
  CHECK(two.at(1) == doctest::Approx(1000.0 * 2 / 7).epsilon(0.15));  // of two that are equal, the first
  CHECK(counts(scores, {.top_k = 1}).at(2) == 1000);
  CHECK(counts(scores, {.top_k = 9}).size() == 4);
}

TEST_CASE("a text is continued by the seed alone, from as many tokens as the model sees") {
  test::FakeLanguageEngine engine(token_sequences(4, 5), 1);
  teach_circle(engine);
  const auto greedy = continue_tokens(engine, {3}, {.length = 6, .temperature = 0}, 5, std::nullopt);
  REQUIRE(greedy);
  CHECK(*greedy == Tokens{3, 4, 0, 1, 2, 3, 4});  // beyond the four positions
  const auto drawn = [&](std::uint64_t seed) {
    return *continue_tokens(engine, {0, 1}, {.length = 40, .temperature = 3, .seed = seed}, 5, std::nullopt);
  };
  CHECK(drawn(1) == drawn(1));
  CHECK(drawn(1) != drawn(2));
  CHECK(drawn(1).size() == 42);
}

TEST_CASE("the end of a text ends it, and tokens that the tokenizer does not have are not drawn") {
  test::FakeLanguageEngine engine(token_sequences(4, 5), 1);
  teach_circle(engine);
  const SampleOptions greedy{.length = 9, .temperature = 0};
  CHECK(*continue_tokens(engine, {0}, greedy, 5, 3U) == Tokens{0, 1, 2});
  CHECK(*continue_tokens(engine, {0, 3}, greedy, 4, 1U) == Tokens{0, 3, 0});  // 4 would follow 3
}

}  // namespace dlrun::runtime
