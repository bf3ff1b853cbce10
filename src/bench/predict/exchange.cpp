#include "src/bench/predict/exchange.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/enum_names.hpp"

namespace dlrun::bench::predict {
namespace {

constexpr auto kNames = enum_names<Algorithm>({{Algorithm::ring, "ring"},
                                               {Algorithm::halving_doubling, "recursive halving-doubling"},
                                               {Algorithm::hierarchical, "hierarchical"},
                                               {Algorithm::parameter_server, "parameter servers"}});

// 0 for one rank, which exchanges nothing.
double if_several(const Size& size, double amount) {
  return size.ranks() > 1 ? amount : 0;
}

// Of a reduce-scatter and an allgather over so many.
double moved(double members) {
  return 2 * (members - 1) / members;
}

constexpr Term kOnce{"the cost of exchanging at all", [](const Size& s) { return if_several(s, 1); }};

constexpr Term kRing[] = {
    kOnce,
    {"latency, which grows with the ranks", [](const Size& s) { return if_several(s, s.ranks() - 1); }},
    {"bandwidth", [](const Size& s) { return moved(s.ranks()); }},
};
constexpr Term kHalvingDoubling[] = {
    kOnce,
    {"latency, which grows with the logarithm of the ranks",
     [](const Size& s) { return if_several(s, std::log2(s.ranks())); }},
    {"bandwidth", [](const Size& s) { return moved(s.ranks()); }},
    {"what grows with the ranks", [](const Size& s) { return if_several(s, s.ranks() - 1); }},
};
constexpr Term kHierarchical[] = {
    kOnce,
    {"latency, which grows with the nodes", [](const Size& s) { return s.nodes - 1; }},
    {"bandwidth between nodes", [](const Size& s) { return moved(s.nodes); }},
    {"bandwidth within nodes", [](const Size& s) { return moved(s.ranks_per_node); }},
};
// A server sits on a node of its own or with a worker; with the worker on its own node it exchanges for free.
// Each pair of worker and server has a connection: on Cori (Mathuriya et al., arXiv:1712.09388) the
// efficiency falls from 80 % with 128 workers and 32 servers to 23 % with 512 and 64, as no term without
// pairs does.
constexpr Term kParameterServer[] = {
    kOnce,
    {"the cost per worker", [](const Size& s) { return s.ranks() - 1; }},
    {"the bandwidth of the servers", [](const Size& s) { return (s.ranks() - 1) / s.servers; }},
    {"the connections between workers and servers",
     [](const Size& s) { return (s.ranks() - 1) * s.servers; }},
};

Cost ring_cost(const Network& network, double bytes, const Size& size) {
  const Link& link = size.nodes > 1 ? network.between : network.within;
  return {2 * (size.ranks() - 1) * link.latency, moved(size.ranks()) * bytes / link.bytes_per_second};
}

// The exchanges over the longest distances, which carry the most, cross the nodes: for all ranks of a node at
// once.
Cost halving_doubling_cost(const Network& network, double bytes, const Size& size) {
  const double within = moved(size.ranks_per_node) / size.nodes * bytes / network.within.bytes_per_second;
  const double between = moved(size.nodes) * size.ranks_per_node * bytes / network.between.bytes_per_second;
  return {2 * (std::log2(size.nodes) * network.between.latency +
               std::log2(size.ranks_per_node) * network.within.latency),
          within + between};
}

Cost hierarchical_cost(const Network& network, double bytes, const Size& size) {
  return {
      2 * ((size.nodes - 1) * network.between.latency + (size.ranks_per_node - 1) * network.within.latency),
      moved(size.ranks_per_node) * bytes / network.within.bytes_per_second +
          moved(size.nodes) * bytes / network.between.bytes_per_second};
}

// Gradients go to the servers, and then parameters come back. Servers of one node share its link.
Cost server_cost(const Network& network, double bytes, const Size& size) {
  const Link& link = size.nodes > 1 ? network.between : network.within;
  const double links = std::min(size.servers, std::max(size.nodes, 1.0));
  return {2 * (size.ranks() - 1) * link.latency,
          2 * (size.ranks() - 1) / links * bytes / link.bytes_per_second};
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  return kNames.name(algorithm);
}

std::span<const Term> terms_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return kRing;
    case Algorithm::halving_doubling:
      return kHalvingDoubling;
    case Algorithm::hierarchical:
      return kHierarchical;
    case Algorithm::parameter_server:
      return kParameterServer;
  }
  return {};
}

Cost cost_of(Algorithm algorithm, const Network& network, double bytes, const Size& size) {
  if (size.ranks() <= 1) return {};
  switch (algorithm) {
    case Algorithm::ring:
      return ring_cost(network, bytes, size);
    case Algorithm::halving_doubling:
      return halving_doubling_cost(network, bytes, size);
    case Algorithm::hierarchical:
      return hierarchical_cost(network, bytes, size);
    case Algorithm::parameter_server:
      return server_cost(network, bytes, size);
  }
  return {};
}

}  // namespace dlrun::bench::predict
