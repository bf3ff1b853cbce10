// The models by name. A builder is a function from the data's shape to a Graph; a new one is a file here and
// a line in models.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

// classify or generate images, or continue texts.
enum class Purpose { classify, generate, continue_text };

struct Model {
  std::string_view name;
  Result<Graph> (*build)(const InputShape& input);
  Purpose purpose = Purpose::classify;
};

std::span<const Model> models();
std::vector<std::string> model_names();

Purpose purpose_of(std::string_view model);  // classify, where there is no model of that name

/// The named model on samples of this shape; an Error for an unknown name, with the nearest one.
Result<Graph> build_model(const std::string& name, const InputShape& input);

Result<Graph> alexnet(const InputShape& input);
Result<Graph> caffenet(const InputShape& input);
Result<Graph> cifar10_convnet(const InputShape& input);
Result<Graph> cosmogan(const InputShape& input);
Result<Graph> dcgan(const InputShape& input);
Result<Graph> googlenet(const InputShape& input);
Result<Graph> gpt2(const InputShape& input);
Result<Graph> gpt2_medium(const InputShape& input);
Result<Graph> gpt2_large(const InputShape& input);
Result<Graph> gpt2_xl(const InputShape& input);
Result<Graph> hep_cnn(const InputShape& input);
Result<Graph> cosmoflow(const InputShape& input);
Result<Graph> inception_v3(const InputShape& input);
Result<Graph> mnist_cnn(const InputShape& input);
Result<Graph> resnet18(const InputShape& input);
Result<Graph> resnet34(const InputShape& input);
Result<Graph> resnet50(const InputShape& input);
Result<Graph> resnet101(const InputShape& input);
Result<Graph> resnet152(const InputShape& input);
Result<Graph> resnet18_cifar(const InputShape& input);

}  // namespace dlrun::runtime
