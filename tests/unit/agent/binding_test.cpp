#include "src/agent/binding.hpp"

#include <algorithm>

#include <doctest/doctest.h>

using namespace dlrun;
using agent::divide;
using agent::Processors;

namespace {
// Four cores of two threads each, numbered as Linux does.
const agent::Cores kCores{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
Processors of(int share, int of) {
  std::vector<agent::CpuRequest> all;
  for (int i = 0; i < of; ++i) all.push_back({{i, of}});
  return divide(kCores, all).value()[static_cast<std::size_t>(share)];
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

TEST_CASE("shares that nobody requests stay free, for the ranks of another agent") {
  CHECK(divide(kCores, {{{1, 2}}}).value()[0] == of(1, 2));
  CHECK(divide(kCores, {{{2, 3}}}).value()[0] == of(2, 3));
  CHECK(divide(kCores, {{{3, 8}}, {{6, 8}}}).value() == std::vector{of(3, 8), of(6, 8)});
}

TEST_CASE("more ranks than processors is an error that counts both") {
  CHECK(divide(kCores, {{{8, 9}}}).error().what ==
        "cannot bind rank share 9 of 9: this node lets us use 8 processors");
  CHECK_FALSE(divide(kCores, {{{-1, 2}}}).has_value());
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

namespace {
// Two sockets of four cores.
const agent::Cores kSockets{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
const Processors kFirst{0, 1, 2, 3}, kSecond{4, 5, 6, 7};
using Divided = std::vector<Processors>;
}  // namespace

TEST_CASE("a rank is bound near its GPU") {
  CHECK(divide(kSockets, {{{0, 2}, kSecond}, {{1, 2}, kFirst}}).value() == Divided{kSecond, kFirst});
  CHECK(
      divide(kSockets, {{{0, 4}, kSecond}, {{1, 4}, kSecond}, {{2, 4}, kFirst}, {{3, 4}, kFirst}}).value() ==
      Divided{{4, 5}, {6, 7}, {0, 1}, {2, 3}});
}

TEST_CASE("ranks that crowd round one socket share it, and fill up from the other") {
  CHECK(divide(kSockets, {{{0, 2}, kFirst}, {{1, 2}, kFirst}}).value() ==
        Divided{{0, 1, 4, 5}, {2, 3, 6, 7}});
  CHECK(divide(kSockets, {{{0, 1}, kSecond}}).value() == Divided{{4, 5, 6, 7, 0, 1, 2, 3}});
}

TEST_CASE("ranks without a GPU leave the cores near the GPUs to those with one") {
  CHECK(divide(kSockets, {{{0, 2}}, {{1, 2}, kFirst}}).value() == Divided{kSecond, kFirst});
}

TEST_CASE("whatever is near what, every core is given once") {
  for (int of = 1; of <= 8; ++of)
    for (int pattern = 0; pattern < 6561; pattern += 7) {  // each rank: no GPU, first or second socket
      std::vector<agent::CpuRequest> requests;
      for (int i = 0, rest = pattern; i < of; ++i, rest /= 3)
        requests.push_back({{i, of}, rest % 3 == 0 ? Processors{} : rest % 3 == 1 ? kFirst : kSecond});
      Processors all;
      const auto divided = divide(kSockets, requests);
      for (const Processors& own : divided.value()) {
        CHECK(static_cast<int>(own.size()) >= 8 / of);
        all.insert(all.end(), own.begin(), own.end());
      }
      std::sort(all.begin(), all.end());
      REQUIRE(all == Processors{0, 1, 2, 3, 4, 5, 6, 7});
    }
}

TEST_CASE("a device that is not there is near nothing") {
  CHECK(agent::processors_near("0000:ff:1f.7").value().empty());
  CHECK(agent::processors_near("no bus id").value().empty());
}
