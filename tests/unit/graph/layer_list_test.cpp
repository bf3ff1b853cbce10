// Models of the user's own: the same graph as a builder makes, and mistakes with their place.
#include "runtime/models/layer_list.hpp"

#include <doctest/doctest.h>

#include "runtime/models/models.hpp"
#include "tests/unit/cpu_growth.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

Result<LayerList> read_list(const std::string& layers) {
  return read_layer_list(yaml::parse("name: mine\nlayers:\n" + layers, "job.yaml").value(), "train.model");
}

std::string refusal(const std::string& layers) {
  const auto list = read_list(layers);
  return list ? "no error" : list.error().text();
}

std::string operations_and_shapes(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes)
    text += fmt::format("{} {}x{}x{}, ", operation_name(node.operation), node.shape.channels,
                        node.shape.height, node.shape.width);
  return text;
}

const std::string kEnd = "  - {fully-connected: classes}\n";

}  // namespace

TEST_CASE("a list of layers is the graph that a builder would make") {
  const auto list = read_list(
      "  - {convolution: 32, kernel: 5, padding: 2, name: conv1}\n  - relu\n  - {max-pool: 2}\n"
      "  - {convolution: 64, kernel: 5, padding: 2, name: conv2}\n  - relu\n  - {max-pool: 2}\n  - flatten\n"
      "  - {fully-connected: 1024, name: fc1}\n  - relu\n  - {dropout: 0.5}\n"
      "  - {fully-connected: classes, name: fc2}\n");
  const Graph mine = build_layers(list.value(), {}).value(), built = mnist_cnn({}).value();
  CHECK(operations_and_shapes(mine) == operations_and_shapes(built));
  CHECK(parameter_count(mine) == parameter_count(built));
  for (std::size_t i = 0; i < built.nodes.size(); ++i) CHECK(mine.nodes[i].name == built.nodes[i].name);
}

TEST_CASE("layers have branches, joins and oblong windows") {
  const auto list = read_list(
      "  - {convolution: 16, name: stem}\n  - {convolution: 16, kernel: [1, 7], padding: [0, 3], name: "
      "wide}\n"
      "  - {average-pool: 3, stride: 1, padding: 1, from: stem, name: mean}\n  - {concat: [wide, mean, "
      "stem]}\n"
      "  - {convolution: 16, groups: 2, bias: false, name: joined}\n  - {add: [joined, stem]}\n"
      "  - {local-response-norm: 5}\n  - batch-norm\n  - global-average-pool\n" +
      kEnd);
  const Graph graph = build_layers(list.value(), {3, 9, 8, 10}).value();
  CHECK(operations_and_shapes(graph) ==
        "input 3x9x8, convolution 16x9x8, convolution 16x9x8, window average pool 16x9x8, concat 48x9x8, "
        "convolution 16x9x8, add 16x9x8, local response norm 16x9x8, batch norm 16x9x8, average pool 16x1x1, "
        "fully connected 10x1x1, loss 1x1x1, ");
}

TEST_CASE("GELU is a word, or has a form") {
  const auto list = [](const std::string& layer) {
    return read_layer_list(
        yaml::parse("name: mine\nlayers:\n  - " + layer + "\n  - {fully-connected: classes}\n", "job.yaml")
            .value(),
        "train.model");
  };
  CHECK(std::get<op::Gelu>(list("gelu")->layers[0].operation).form == op::Gelu::Form::erf);
  CHECK(std::get<op::Gelu>(list("{gelu: erf}")->layers[0].operation).form == op::Gelu::Form::erf);
  CHECK(std::get<op::Gelu>(list("{gelu: tanh}")->layers[0].operation).form == op::Gelu::Form::tanh);
  CHECK(list("{gelu: fast}").error().text().find("erf, tanh") != std::string::npos);
}

TEST_CASE("layers go up again, and a loss of one logit tells two classes apart") {
  const auto list = read_layer_list(
      yaml::parse("name: mine\nloss: sigmoid\nlayers:\n"
                  "  - {convolution: 16, kernel: 4, stride: 2, padding: 1}\n  - leaky-relu\n"
                  "  - {transposed-convolution: 8, kernel: 5, stride: 2, padding: 2, output-padding: 1}\n"
                  "  - {leaky-relu: 0.1}\n  - tanh\n  - {fully-connected: 1}\n",
                  "job.yaml")
          .value(),
      "train.model");
  const Graph graph = build_layers(list.value(), {3, 8, 8, 2}).value();
  CHECK(operations_and_shapes(graph) ==
        "input 3x8x8, convolution 16x4x4, leaky relu 16x4x4, transposed convolution 8x8x8, "
        "leaky relu 8x8x8, tanh 8x8x8, fully connected 1x1x1, sigmoid cross entropy 1x1x1, ");
  CHECK(std::get<op::LeakyRelu>(graph.nodes[2].operation).slope == 0.2F);
  CHECK(std::get<op::LeakyRelu>(graph.nodes[4].operation).slope == 0.1F);
  CHECK(build_layers(list.value(), {3, 8, 8, 3}).error().what.find("one logit tells two classes apart") !=
        std::string::npos);
}

TEST_CASE("a list of layers on sequences ends in the loss over their vocabulary") {
  const auto list = read_layer_list(
      yaml::parse(
          "loss: vocabulary\nlayers:\n  - {embedding: 24, positions: 16, name: words}\n"
          "  - layer-norm\n  - {linear: 48, bias: false}\n"
          "  - {attention: 4, key-heads: 2, rotary-base: 100, attention-dropout: 0.1, name: mixed}\n"
          "  - {linear: 24, name: out}\n  - {add: [words, out]}\n  - rms-norm\n"
          "  - {linear: 32, name: gate}\n  - {linear: 32, from: out, name: up}\n  - {swiglu: [gate, up]}\n",
          "job.yaml")
          .value(),
      "train.model");
  const Graph graph = build_layers(list.value(), token_sequences(16, 50)).value();
  CHECK(std::get<op::Attention>(graph.nodes[4].operation).keys() == 2);
  CHECK(std::get<op::Attention>(graph.nodes[4].operation).dropout == 0.1F);
  CHECK(graph.nodes[4].shape == sequence(16, 24));
  CHECK(graph.nodes.back().name == "head");
  CHECK(parameter_count(graph) ==
        50 * 24 + 16 * 24 + 2 * 24 + 24 * 48 + 25 * 24 + 24 + 2 * 25 * 32 + 50 * 32);
  CHECK(build_layers(list.value(), {3, 8, 8, 10}).error().what.find("words reads tokens") !=
        std::string::npos);
  const auto linear = read_list("  - {linear: 8}\n" + kEnd);
  CHECK(build_layers(linear.value(), {})
            .error()
            .what.find(
                "layer1 is linear, which reads sequences; of an image of 1x28x28, write fully-connected") !=
        std::string::npos);
}

TEST_CASE("mistakes are named with their place") {
  CHECK(refusal("  - {transposed-convolution: 8, stride: 2, output-padding: 2}\n" + kEnd)
            .find("2 is out of range") != std::string::npos);
  CHECK(refusal("  - {attention: 4, attention-dropout: 1}\n" + kEnd)
            .find("attention-dropout: 1 is out of range") != std::string::npos);
  CHECK(refusal("  - {leaky-relu: 1.5}\n" + kEnd).find("1.5 is out of range") != std::string::npos);
  CHECK(refusal("  - {convolutoin: 32}\n" + kEnd) ==
        "job.yaml:3:5: unknown layer 'convolutoin' in train.model.layers[0]\n"
        "  hint: did you mean 'convolution'?");
  for (const auto& [theirs, ours] : std::map<std::string, std::string>{{"conv", "convolution"},
                                                                       {"Conv2d", "convolution"},
                                                                       {"dense", "fully-connected"},
                                                                       {"fc", "fully-connected"},
                                                                       {"relu6", "relu"},
                                                                       {"MaxPool2d", "max-pool"},
                                                                       {"BatchNorm2d", "batch-norm"}})
    for (const std::string& item : {theirs, "{" + theirs + ": 3}"})
      CHECK(refusal("  - " + item + "\n" + kEnd).find("  hint: did you mean '" + ours + "'?") !=
            std::string::npos);
  CHECK(refusal("  - zebra\n" + kEnd)
            .find("unknown layer 'zebra' in train.model.layers[0]\n"
                  "  hint: valid names: convolution, ") != std::string::npos);
  CHECK(refusal("  - {}\n" + kEnd).find("train.model.layers[0] names no layer") != std::string::npos);
  CHECK(refusal("  - {convolution: 32, kernal: 3}\n" + kEnd).find("did you mean 'kernel'?") !=
        std::string::npos);
  CHECK(refusal("  - rleu\n" + kEnd).find("did you mean 'relu'?") != std::string::npos);
  CHECK(refusal("  - {relu: , from: stem}\n" + kEnd).find("no layer before this one is called 'stem'") !=
        std::string::npos);
  CHECK(refusal("  - {convolution: 8, name: a}\n  - {relu: , name: a}\n" + kEnd)
            .find("the layer name 'a' is taken") != std::string::npos);
  CHECK(refusal("  - {convolution: 8, relu: }\n" + kEnd).find("is two layers: convolution and relu") !=
        std::string::npos);
  CHECK(refusal("  - {add: [image]}\n" + kEnd).find("takes the names of two layers") != std::string::npos);
  CHECK(refusal("  - {convolution: 0}\n" + kEnd).find("0 is out of range") != std::string::npos);
  CHECK(refusal("  - {max-pool: 99}\n" + kEnd).find("99 is out of range") != std::string::npos);
  CHECK(refusal("  - [relu]\n" + kEnd).find("must be a layer: a word or a map") != std::string::npos);
  CHECK(refusal("  - relu\n").find("the last layer must give a score for each class") != std::string::npos);
}

TEST_CASE("a layer that leads nowhere is a mistake") {
  CHECK(refusal("  - {convolution: 8, name: stem}\n  - {convolution: 8}\n  - {convolution: 8, from: stem}\n" +
                kEnd) ==
        "job.yaml:4:5: no layer reads train.model.layers[1]\n"
        "  hint: leave it out, or name it and read it by 'from', 'add' or 'concat'");
  CHECK(read_list("  - {convolution: 8, name: stem}\n  - relu\n  - {batch-norm: , from: stem, name: other}\n"
                  "  - {convolution: 8, name: end, from: stem}\n  - {add: [other, end]}\n" +
                  kEnd)
            .error()
            .text()
            .starts_with("job.yaml:4:5: no layer reads train.model.layers[1]"));
}

TEST_CASE("a list of many layers is read in linear time") {
  const auto tree_of = [](std::size_t layers) {
    std::string text = "layers:\n";
    for (std::size_t i = 0; i < layers; ++i) text += "  - relu\n";
    return yaml::parse(text + kEnd, "job.yaml").value();
  };
  const yaml::Node large = tree_of(32'000), small = tree_of(4'000);
  const auto read = [&](std::size_t layers) {
    return read_layer_list(layers == 4'000 ? small : large, "train.model").value();
  };
  CHECK(read(32'000).layers.size() == 32'001);
  CHECK(dlrun::test::cpu_growth(4'000, read) < dlrun::test::kMaxGrowth);
}

TEST_CASE("what does not fit the images is the builder's error") {
  const auto list = read_list("  - {convolution: 8, kernel: 5}\n" + kEnd);
  CHECK(build_layers(list.value(), {1, 4, 4, 10})
            .error()
            .what.find("model 'mine' cannot take images of 1x4x4") != std::string::npos);
}
