#include "src/agent/binding.hpp"

#include <algorithm>

#include <doctest/doctest.h>

using namespace dlrun;
using agent::processors_of;
using Processors = std::vector<int>;

namespace {
// Four cores of two threads each, numbered as Linux does.
const agent::Cores kCores{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
Processors of(int share, int of) {
  return processors_of(kCores, {share, of}).value();
}
}  // namespace

TEST_CASE("ranks get whole neighbouring cores, the first ones the remainder") {
  CHECK(of(0, 1) == Processors{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(of(0, 2) == Processors{0, 4, 1, 5});
  CHECK(of(1, 2) == Processors{2, 6, 3, 7});
  CHECK(of(0, 3) == Processors{0, 4, 1, 5});
  CHECK(of(2, 3) == Processors{3, 7});
}

TEST_CASE("more ranks than cores share cores by their threads") {
  CHECK(of(0, 8) == Processors{0});
  CHECK(of(1, 8) == Processors{4});
  CHECK(of(7, 8) == Processors{7});
  CHECK(of(0, 5) == Processors{0, 4});
}

TEST_CASE("more ranks than processors is an error that counts both") {
  CHECK(processors_of(kCores, {8, 9}).error().what ==
        "cannot bind rank share 9 of 9: this node lets us use 8 processors");
  CHECK_FALSE(processors_of(kCores, {-1, 2}).has_value());
}

TEST_CASE("every processor of this machine that we may use is in exactly one core") {
  const auto cores = agent::usable_cores();
  REQUIRE(cores.has_value());
  Processors all;
  for (const auto& core : *cores) all.insert(all.end(), core.begin(), core.end());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK_FALSE(all.empty());
}
