// A model of the user's own: the list of layers in the job file, or the settings of a transformer, as data.
// Reading checks what can be known without the images (layers, their settings, the names that others refer
// to); building gives the Graph for one shape of image. It has no loops and no arithmetic: who needs those
// writes a builder in C++.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/graph/graph.hpp"
#include "runtime/models/transformer.hpp"
#include "src/base/yaml.hpp"

namespace dlrun::runtime {

struct LayerList {
  struct Layer {
    Operation operation;
    std::string name;                 // of its tensors and for others' `from`; empty: numbered
    std::vector<std::size_t> inputs;  // layers, counted from 1; 0 is the image
  };
  // sigmoid: of one logit, for two classes; vocabulary: of sequences, with weights of its own ("head").
  enum class LossKind { softmax, sigmoid, vocabulary };
  std::string name;
  LossKind loss = LossKind::softmax;
  std::vector<Layer> layers;
  std::optional<Transformer> transformer = {};  // in place of layers
};

/// `node` is {name: ..., layers: [...]} or {name: ..., transformer: {...}}; `path` is what errors call it
/// ("train.model").
Result<LayerList> read_layer_list(const yaml::Node& node, const std::string& path);

/// The model on samples of this shape, with the loss at its end.
Result<Graph> build_layers(const LayerList& list, const InputShape& input);

}  // namespace dlrun::runtime
