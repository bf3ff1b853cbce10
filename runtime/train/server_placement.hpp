// Which parameter server sums which gradients: a pure function of the tensors, the same on every rank.
// round-robin distributes tensors in the order of the arena, whatever their size; greedy gives the largest
// first, each to the server with the fewest bytes; split cuts large tensors into parts before that.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/comm_dtype.hpp"
#include "runtime/engine/engine.hpp"
#include "src/base/json_fwd.hpp"

namespace dlrun::runtime {

enum class Placement { round_robin, greedy, split };

std::string_view name_of(Placement placement);

struct PlacedSlice {
  std::size_t offset = 0;  // floats
  std::size_t length = 0;
  int server = 0;
};

/// Places every slice on a server, in the order of the arena.
std::vector<PlacedSlice> place(const std::vector<GradientSlice>& slices, Placement placement, int servers);

/// The rank of a server: servers are spread evenly over the ranks, and so over the nodes.
int rank_of_server(int server, int servers, int ranks);

struct ServerLoad {
  int rank = 0;
  std::size_t pieces = 0, bytes = 0;
};
/// What each server receives from a rank, in that dtype.
std::vector<ServerLoad> loads(const std::vector<PlacedSlice>& slices, int servers, int ranks,
                              CommDtype dtype = CommDtype::f32);

/// One line per server for people, after one that names the placement and how even it is.
std::vector<std::string> table(const std::vector<ServerLoad>& loads, Placement placement);
Json to_json(const std::vector<ServerLoad>& loads, Placement placement);

}  // namespace dlrun::runtime
