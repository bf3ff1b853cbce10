// What the agents found out, as the record has it.
#include "src/record/found_provenance.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::job;

namespace {

Json found(const char* model, const Json& program = nullptr) {
  return {{"node", {{"cpus", {{"model", model}}}}}, {"program", program}};
}

}  // namespace

TEST_CASE("equal nodes are told once, with their names, and make one event") {
  FoundProvenance all;
  CHECK(all.all() == Json{{"nodes", nullptr}, {"program", nullptr}, {"data", nullptr}});
  CHECK(all.take("n1", found("fast")).value()["node"]["cpus"]["model"] == "fast");
  CHECK_FALSE(all.take("n2", found("fast")));
  CHECK(all.take("n3", found("slow")));
  const Json nodes = all.all()["nodes"];
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0]["hosts"] == "n[1-2]");
  CHECK(nodes[1] == Json{{"hosts", "n3"}, {"cpus", {{"model", "slow"}}}});
}

TEST_CASE("a program that loads more is told again, and one that has ended stays known") {
  FoundProvenance all;
  CHECK(all.take("n1", found("fast", {{"file", "a"}})));
  CHECK_FALSE(all.take("n1", found("fast", {{"file", "a"}})));
  CHECK(all.take("n1", found("fast", {{"file", "b"}})).value()["program"]["file"] == "b");
  CHECK_FALSE(all.take("n1", found("fast")));
  CHECK(all.all()["program"]["file"] == "b");
  CHECK(all.take_data({{"fingerprint", "ab"}}));
  CHECK_FALSE(all.take_data({{"fingerprint", "ab"}}));
  CHECK(all.all()["data"]["fingerprint"] == "ab");
}
