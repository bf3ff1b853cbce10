// How long the exchange of gradients takes: a sum of terms, each a coefficient times what follows from the
// numbers of nodes, ranks and servers. A named network gives the coefficients of latency and bandwidth; a fit
// finds those of all terms from measured points.
#pragma once

#include <span>
#include <string_view>

#include "src/bench/predict/network.hpp"

namespace dlrun::bench::predict {

enum class Algorithm { ring, halving_doubling, hierarchical, parameter_server };
std::string_view name_of(Algorithm algorithm);
inline constexpr Algorithm kAlgorithms[] = {Algorithm::ring, Algorithm::halving_doubling,
                                            Algorithm::hierarchical, Algorithm::parameter_server};

struct Size {
  double nodes = 1, ranks_per_node = 1, servers = 1;
  double ranks() const { return nodes * ranks_per_node; }
};

struct Term {
  std::string_view reason;        // what bounds the step where this term is the largest
  double (*amount)(const Size&);  // 0 where there is no exchange
};

/// The terms of which a fit may choose.
std::span<const Term> terms_of(Algorithm algorithm);

struct Cost {
  double latency = 0, bandwidth = 0;  // seconds
  double seconds() const { return latency + bandwidth; }
};

/// On a named network, for gradients of so many bytes.
Cost cost_of(Algorithm algorithm, const Network& network, double bytes, const Size& size);

}  // namespace dlrun::bench::predict
