// Which rank is on which node, as MPICH reads it.
#include "src/agent/pmi/pmi1_mapping.hpp"

#include <doctest/doctest.h>

namespace dlrun::agent {

namespace {

std::string mapping(const std::vector<int>& node_of_rank) {
  return pmi1_process_mapping(node_of_rank).value_or("error");
}

}  // namespace

TEST_CASE("equal nodes are one block") {
  CHECK(mapping({0}) == "(vector,(0,1,1))");
  CHECK(mapping({0, 0, 1, 1}) == "(vector,(0,2,2))");
  CHECK(mapping({0, 1, 2, 3}) == "(vector,(0,4,1))");
}

TEST_CASE("nodes with other counts are blocks of their own") {
  CHECK(mapping({0, 1, 1, 1}) == "(vector,(0,1,1),(1,1,3))");
  CHECK(mapping({0, 0, 1, 1, 2}) == "(vector,(0,2,2),(2,1,1))");
}

TEST_CASE("a placement that comes back to a node keeps its order") {
  CHECK(mapping({0, 1, 0, 1}) == "(vector,(0,2,1),(0,2,1))");
}

TEST_CASE("a thousand nodes are still one block, a thousand changes are too long") {
  std::vector<int> regular;
  std::vector<int> alternating;
  for (int i = 0; i < 1000; ++i) {
    regular.push_back(i);
    alternating.push_back(i % 2 == 0 ? 0 : 2);
  }
  CHECK(mapping(regular) == "(vector,(0,1000,1))");
  const auto result = pmi1_process_mapping(alternating);
  REQUIRE(!result);
  CHECK(result.error().what ==
        "the placement of 1000 ranks needs 8008 bytes as a PMI-1 process mapping, and "
        "clients read 960");
}

}  // namespace dlrun::agent
