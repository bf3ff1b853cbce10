// What nodes of a graph are to whoever trains it, on any device: the losses that are told, and what makes the
// images of a GAN, and the rows of data.
#pragma once

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

// A GAN's losses all; else the last: heads that help training are not reported.
std::vector<std::size_t> reported_losses(const Graph& graph);

// From the noise to the images that the discriminator sees detached: the nodes [first, last].
struct Generator {
  std::size_t first, last;
};
std::optional<Generator> generator_of(const Graph& graph);

// What a sample of the model's data is, and its shape; of a stage of a pipeline that reads no samples, too.
SampleKind kind_of_rows(const Graph& graph);
Shape shape_of_rows(const Graph& graph);

// Operators before `node` that draw a mask, in all stages of a pipeline: the number by which this one is
// keyed.
std::size_t masks_before(const Graph& graph, std::size_t node);

}  // namespace dlrun::runtime
