// Where tensors go: every float on exactly one server, as even as the placement promises.
#include <set>

#include <doctest/doctest.h>

#include "runtime/train/server_placement.hpp"
#include "src/base/json.hpp"

using namespace dlrun::runtime;

namespace {

// AlexNet's sizes in miniature: one tensor has most of the bytes.
std::vector<GradientSlice> uneven() {
  const std::size_t lengths[] = {3'776'000, 1'677'824, 409'600, 65'536, 16, 1'000, 16'384, 512};
  std::vector<GradientSlice> out;
  std::size_t offset = 0;
  for (const std::size_t length : lengths) {
    out.push_back({fmt::format("t{}", out.size()), offset, length});
    offset += length;
  }
  return out;
}

double fullest_to_mean(const std::vector<ServerLoad>& loads) {
  double sum = 0, most = 0;
  for (const ServerLoad& load : loads) {
    sum += static_cast<double>(load.bytes);
    most = std::max(most, static_cast<double>(load.bytes));
  }
  return most / (sum / static_cast<double>(loads.size()));
}

double unevenness(Placement placement, int servers) {
  return fullest_to_mean(loads(place(uneven(), placement, servers), servers, servers));
}

}  // namespace

TEST_CASE("every float has one server, whatever the placement and the number of servers") {
  for (const Placement placement : {Placement::round_robin, Placement::greedy, Placement::split})
    for (const int servers : {1, 2, 3, 7, 64}) {
      CAPTURE(servers);
      std::size_t next = 0;
      for (const PlacedSlice& slice : place(uneven(), placement, servers)) {
        CHECK(slice.offset == next);
        CHECK(slice.length > 0);
        CHECK(slice.server >= 0);
        CHECK(slice.server < servers);
        next = slice.offset + slice.length;
      }
      CHECK(next == uneven().back().offset + uneven().back().length);
    }
}

TEST_CASE("round-robin deals in order; only a split tensor is cut") {
  const auto placed = place(uneven(), Placement::round_robin, 3);
  REQUIRE(placed.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(placed[i].server == static_cast<int>(i % 3));
  CHECK(place(uneven(), Placement::greedy, 3).size() == 8);
  CHECK(place(uneven(), Placement::split, 3).size() > 8);
}

TEST_CASE("greedy is no worse than round-robin, and splitting large tensors levels what greedy cannot") {
  for (const int servers : {2, 4, 8}) {
    CAPTURE(servers);
    CHECK(unevenness(Placement::greedy, servers) <= unevenness(Placement::round_robin, servers));
    CHECK(unevenness(Placement::split, servers) <= 1.26);
  }
  CHECK(unevenness(Placement::greedy, 4) > 2);  // one tensor has more than half
}

TEST_CASE("servers are spread over the ranks") {
  std::set<int> ranks;
  for (int server = 0; server < 3; ++server) ranks.insert(rank_of_server(server, 3, 12));
  CHECK(ranks == std::set<int>{0, 4, 8});
  CHECK(rank_of_server(1, 2, 2) == 1);
}

TEST_CASE("the table shows bytes a server, for people and for the record") {
  const std::vector<PlacedSlice> slices = {{0, 250'000, 0}, {250'000, 500'000, 1}, {750'000, 250'000, 0}};
  const auto seen = loads(slices, 2, 4);
  const auto lines = table(seen, Placement::greedy);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "parameter servers: 2, placement greedy; the fullest has 1.00 times the mean");
  CHECK(lines[1] == "  server 0 on rank 0: 2 tensors or parts, 2.000 MB");
  CHECK(lines[2] == "  server 1 on rank 2: 1 tensors or parts, 2.000 MB");
  CHECK(to_json(seen, Placement::greedy)["servers"][1]["bytes"] == 2'000'000);
  CHECK(loads(slices, 2, 4, CommDtype::bf16)[1].bytes == 1'000'000);
}
