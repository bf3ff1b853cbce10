// Tensor parallelism as a pass over graphs: from a model to what one rank of a tensor group has of it. Layers
// whose settings say so are divided by columns or rows, attention by heads, embeddings and the loss over a
// vocabulary by its tokens; what must be summed over the group stands between as operators of its own. With
// sequence parallelism the values between these layers are slices of the batch's positions: what does the
// same to each position by itself (norms, dropout, sums of the residual stream) does so to a slice. It is a
// pure function of the model, the number of parts and the part: it knows no ranks.
#pragma once

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

struct ParameterRule;

/// The place of a rank in its tensor group.
enum class SequenceParallel { off, on };
struct TensorRank {
  int part = 0, parts = 1;
  SequenceParallel sequence = SequenceParallel::off;
  bool alone() const { return parts == 1; }
  bool slices() const { return !alone() && sequence == SequenceParallel::on; }
};

/// The part of `whole` that the rank has. Its parameters begin as those of
/// the whole model. An Error names the layer that cannot be divided, or that reads divided features without
/// being able to, or says that no layer of the model is divided.
Result<Graph> split_graph(const Graph& whole, const TensorRank& rank);

/// Whether any layer says how it is divided.
bool has_split(const Graph& graph);

/// Of a whole parameter of such a node, the part that this rank has.
void take_part(ParameterRule& rule, const NodePart& part);

}  // namespace dlrun::runtime
