// From scores to classes, and how often they are right.
#include "runtime/train/scoring.hpp"

#include <array>
#include <cmath>

#include <doctest/doctest.h>

using namespace dlrun::runtime;

TEST_CASE("classes are ranked by the softmax of their scores, ties by number") {
  const std::array scores = {1.0F, 3.0F, 1.0F, -200.0F};
  const auto all = ranked(scores, 9);
  REQUIRE(all.size() == 4);
  CHECK(all[0].label == 1);
  CHECK(all[1].label == 0);
  CHECK(all[2].label == 2);
  CHECK(all[0].probability == doctest::Approx(std::exp(2.0) / (std::exp(2.0) + 2)));
  CHECK(all[3].probability == doctest::Approx(0));
  CHECK(ranked(scores, 2).size() == 2);
}

TEST_CASE("one logit tells two classes apart") {
  const std::array logit = {2.0F};
  const auto both = ranked(logit, 5);
  REQUIRE(both.size() == 2);
  CHECK(both[0].label == 1);
  CHECK(both[0].probability == doctest::Approx(1 / (1 + std::exp(-2.0))));
}

TEST_CASE("top-1, top-5 and the confusion matrix count rows") {
  Confusion confusion(7);
  const std::array<RankedClass, 6> ranking = {{{3, 0.5}, {2, 0.2}, {1, 0.1}, {0, 0.1}, {4, 0.05}, {5, 0.05}}};
  for (const std::size_t label : {3, 3, 4, 5}) confusion.add(label, ranking);
  CHECK(confusion.rows() == 4);
  CHECK(confusion.top1() == 0.5);
  CHECK(confusion.top5() == 0.75);
  CHECK(confusion.count(3, 3) == 2);
  CHECK(confusion.count(5, 3) == 1);
  CHECK(confusion.count(3, 5) == 0);
}
