// Networks that a prediction can be made for, by name: an α-β model each, between nodes and within one. The
// figures are those of the makers' data sheets or of published measurements, not of any one site.
#pragma once

#include <span>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun::bench::predict {

struct Link {
  double latency = 0;           // seconds per message, with the software's part
  double bytes_per_second = 0;  // in one direction
};

struct Network {
  std::string_view name, text;
  Link between;  // of a node
  Link within;   // of a rank
};

std::span<const Network> networks();
/// An Error (usage) with the nearest name.
Result<Network> find_network(const std::string& name);

}  // namespace dlrun::bench::predict
