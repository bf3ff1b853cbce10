// Rewrites a graph into one that does the same with fewer passes over memory. The numbers do not change: a
// ReLU is only done together with the operator before it, or after a maximum instead of before it.
#pragma once

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

Graph fuse(Graph graph);

}  // namespace dlrun::runtime
