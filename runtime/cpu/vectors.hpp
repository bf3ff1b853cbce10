// What a fully connected layer gives lies as a plain vector on the CPU; most operators read images, which lie
// in blocks of channels there.
#pragma once

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

// `graph`, which is fused, with a reshape before every operator that reads images and would be given such a
// vector.
Graph as_images(Graph graph);

}  // namespace dlrun::runtime
