// On which NUMA nodes a rank's memory lies, on a node with two domains with cores and one without (MCDRAM,
// CXL).
#include "src/agent/memory_nodes.hpp"

#include <doctest/doctest.h>

#include "src/base/number_list.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::test;
using Nodes = std::vector<int>;

namespace {

MemoryBinding bound(const std::string& numa, const agent::Processors& processors) {
  const Folder folder;
  folder.write("has_memory", "0-2\n");
  folder.write("node0/cpulist", "0-3,8-11\n");
  folder.write("node1/cpulist", "4-7\n");
  folder.write("node2/cpulist", "\n");
  const auto out = agent::memory_binding({.numa = numa}, processors, folder.path);
  if (!out) return {MemoryBinding::Policy::bind, {-1}};
  return out->value_or(MemoryBinding{MemoryBinding::Policy::bind, {-2}});
}

}  // namespace

TEST_CASE("memory is bound to the NUMA nodes of the rank's cores, spread, or where the user says") {
  CHECK(bound("local", {9, 10}).nodes == Nodes{0});
  CHECK(bound("local", {3, 4}).nodes == Nodes{0, 1});
  CHECK(bound("local", {}).nodes == Nodes{0, 1, 2});
  CHECK(bound("interleave", {4}).nodes == Nodes{0, 1, 2});
  CHECK(bound("interleave", {4}).policy == MemoryBinding::Policy::interleave);
  CHECK(bound("2", {4}).nodes == Nodes{2});
  CHECK(bound("2", {4}).policy == MemoryBinding::Policy::bind);
  CHECK(bound("3", {4}).nodes == Nodes{-1});
  CHECK(bound("", {4}).nodes == Nodes{-2});
}

TEST_CASE("lists of numbers are read strictly") {
  CHECK(parse_number_list("3,0-1,1\n", 8).value() == Nodes{0, 1, 3});
  CHECK(parse_number_list("", 8).value().empty());
  for (const char* text : {"8", "1-", "-1", "3-1", "a", "1,,2", "1-2-3"})
    CHECK_FALSE(parse_number_list(text, 8));
}
