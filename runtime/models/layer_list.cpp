// Reading: each layer is a word ("relu") or a map whose one layer key names it ("convolution: 32, kernel:
// 5").
#include "runtime/models/layer_list.hpp"

#include <algorithm>
#include <array>

#include "src/base/fields.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using YamlNode = yaml::Node;

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> names{"convolution",
                                              "fully-connected",
                                              "max-pool",
                                              "average-pool",
                                              "global-average-pool",
                                              "batch-norm",
                                              "relu",
                                              "leaky-relu",
                                              "tanh",
                                              "transposed-convolution",
                                              "dropout",
                                              "flatten",
                                              "local-response-norm",
                                              "add",
                                              "concat"};
  return names;
}

// What PyTorch, Keras and Caffe call them.
constexpr OtherName kOtherKinds[] = {
    {"conv", "convolution"},
    {"conv2d", "convolution"},
    {"linear", "fully-connected"},
    {"dense", "fully-connected"},
    {"fc", "fully-connected"},
    {"inner-product", "fully-connected"},
    {"maxpool", "max-pool"},
    {"maxpool2d", "max-pool"},
    {"max-pooling", "max-pool"},
    {"max-pooling2d", "max-pool"},
    {"pool", "max-pool"},
    {"avgpool", "average-pool"},
    {"avgpool2d", "average-pool"},
    {"avg-pool", "average-pool"},
    {"average-pooling2d", "average-pool"},
    {"adaptiveavgpool2d", "global-average-pool"},
    {"global-average-pooling2d", "global-average-pool"},
    {"gap", "global-average-pool"},
    {"bn", "batch-norm"},
    {"batchnorm", "batch-norm"},
    {"batchnorm2d", "batch-norm"},
    {"batch-normalization", "batch-norm"},
    {"relu6", "relu"},
    {"leakyrelu", "leaky-relu"},
    {"convtranspose2d", "transposed-convolution"},
    {"conv2d-transpose", "transposed-convolution"},
    {"conv-transpose", "transposed-convolution"},
    {"deconv", "transposed-convolution"},
    {"deconvolution", "transposed-convolution"},
    {"lrn", "local-response-norm"},
    {"localresponsenorm", "local-response-norm"},
    {"residual", "add"},
    {"shortcut", "add"},
    {"eltwise", "add"},
    {"cat", "concat"},
    {"concatenate", "concat"},
};

// `word` is no layer of ours.
tl::unexpected<Error> unknown_kind(const YamlNode& node, const std::string& word, const std::string& path) {
  const std::string_view ours = our_name(word, kOtherKinds);
  return yaml::error_at(node, fmt::format("unknown layer '{}' in {}", word, path),
                        ours.empty() ? did_you_mean(word, kinds()) : fmt::format("did you mean '{}'?", ours));
}

bool is_kind(const std::string& word) {
  return std::find(kinds().begin(), kinds().end(), word) != kinds().end();
}

constexpr std::int64_t kMost = 1 << 20, kWindow = 1 << 10;

// What the layers before are called.
class Names {
 public:
  Result<void> add(const YamlNode& place, const std::string& name, std::size_t layer) {
    if (name == "image" || !places_.emplace(name, layer).second)
      return yaml::error_at(place, fmt::format("the layer name '{}' is taken", name));
    return {};
  }
  Result<std::size_t> find(const YamlNode& place, const std::string& name) const {
    if (name == "image") return 0;
    if (const auto found = places_.find(name); found != places_.end()) return found->second;
    std::vector<std::string> known{"image"};
    for (const auto& [other, layer] : places_) known.push_back(other);
    return yaml::error_at(place, fmt::format("no layer before this one is called '{}'", name),
                          did_you_mean(name, known));
  }

 private:
  std::map<std::string, std::size_t> places_;
};

// 5, or [1, 7] for height and width.
Result<std::pair<std::int64_t, std::int64_t>> read_pair(Fields& fields, std::string_view key,
                                                        std::int64_t fallback, std::int64_t low) {
  const YamlNode* node = fields.find(key);
  if (node == nullptr) return std::pair(fallback, fallback);
  if (node->kind != yaml::Kind::list) {
    const auto both = TRY(yaml::as_integer(*node, fields.path(key), low, kWindow));
    return std::pair(both, both);
  }
  if (node->items.size() != 2)
    return yaml::error_at(*node, fmt::format("{} is a number, or height and width", fields.path(key)));
  const auto height = TRY(yaml::as_integer(node->items[0], fields.path(key), low, kWindow));
  return std::pair(height, TRY(yaml::as_integer(node->items[1], fields.path(key), low, kWindow)));
}

Result<op::Convolution> read_convolution(Fields& fields, const YamlNode& value) {
  op::Convolution out;
  out.filters = TRY(yaml::as_integer(value, fields.path("convolution"), 1, kMost));
  std::tie(out.kernel, out.kernel_width) = TRY(read_pair(fields, "kernel", 1, 1));
  std::tie(out.padding, out.padding_width) = TRY(read_pair(fields, "padding", 0, 0));
  out.stride = TRY(fields.integer_or("stride", 1, 1, kWindow));
  out.groups = TRY(fields.integer_or("groups", 1, 1, kMost));
  out.bias = TRY(fields.bool_or("bias", true)) ? Bias::learned : Bias::none;
  return out;
}

Result<op::TransposedConvolution> read_transposed(Fields& fields, const YamlNode& value) {
  op::TransposedConvolution out;
  out.filters = TRY(yaml::as_integer(value, fields.path("transposed-convolution"), 1, kMost));
  out.kernel = TRY(fields.integer_or("kernel", 1, 1, kWindow));
  out.stride = TRY(fields.integer_or("stride", 1, 1, kWindow));
  out.padding = TRY(fields.integer_or("padding", 0, 0, kWindow));
  out.output_padding = TRY(fields.integer_or("output-padding", 0, 0, out.stride - 1));
  out.bias = TRY(fields.bool_or("bias", true)) ? Bias::learned : Bias::none;
  return out;
}

// A word, or the slope where the input is negative.
Result<op::LeakyRelu> read_leaky_relu(Fields& fields, const YamlNode& value) {
  op::LeakyRelu out;
  if (value.kind == yaml::Kind::scalar && (value.scalar.empty() || value.scalar == "leaky-relu")) return out;
  out.slope = static_cast<float>(TRY(yaml::as_number(value, fields.path("leaky-relu"), 0, 1)));
  return out;
}

// Windows that do not overlap, where the stride is not said.
template <class Pool>
Result<Pool> read_pool(Fields& fields, const YamlNode& value, std::string_view key) {
  static const std::vector<std::string> edges{"drop", "keep"};
  constexpr std::int64_t widest = std::is_same_v<Pool, op::MaxPool> ? 15 : kWindow;  // a byte says who won
  Pool out;
  out.window = TRY(yaml::as_integer(value, fields.path(key), 1, widest));
  out.stride = TRY(fields.integer_or("stride", out.window, 1, kWindow));
  out.padding = TRY(fields.integer_or("padding", 0, 0, out.window / 2));
  out.edge = TRY(fields.choice_or("edge", 0, edges)) == 0 ? Edge::dropped : Edge::kept;
  if constexpr (requires { out.counted; })
    out.counted = TRY(fields.bool_or("count-padding", true)) ? Padding::counts : Padding::ignored;
  return out;
}

Result<Operation> read_operation(Fields& fields, const std::string& kind, const YamlNode& value,
                                 LayerList::Layer& layer) {
  if (kind == "convolution") return Operation(TRY(read_convolution(fields, value)));
  if (kind == "transposed-convolution") return Operation(TRY(read_transposed(fields, value)));
  if (kind == "leaky-relu") return Operation(TRY(read_leaky_relu(fields, value)));
  if (kind == "tanh") return Operation(op::Tanh{});
  if (kind == "max-pool") return Operation(TRY(read_pool<op::MaxPool>(fields, value, kind)));
  if (kind == "average-pool") return Operation(TRY(read_pool<op::AveragePool>(fields, value, kind)));
  if (kind == "dropout")
    return Operation(
        op::Dropout{static_cast<float>(TRY(yaml::as_number(value, fields.path(kind), 0, 0.999)))});
  if (kind == "fully-connected") {
    layer.scores = value.kind == yaml::Kind::scalar && value.scalar == "classes";
    return Operation(op::FullyConnected{
        .outputs = layer.scores ? 1 : TRY(yaml::as_integer(value, fields.path(kind), 1, kMost))});
  }
  if (kind == "local-response-norm") {
    op::LocalResponseNorm out;
    out.size = TRY(yaml::as_integer(value, fields.path(kind), 1, kWindow));
    out.alpha = static_cast<float>(TRY(fields.number_or("alpha", 1e-4, 0, 1e3)));
    out.beta = static_cast<float>(TRY(fields.number_or("beta", 0.75, 0, 10)));
    out.bias = static_cast<float>(TRY(fields.number_or("k", 1, 1e-6, 1e3)));
    return Operation(out);
  }
  if (kind == "batch-norm") return Operation(op::BatchNorm{});
  if (kind == "relu") return Operation(op::Relu{});
  if (kind == "flatten") return Operation(op::Flatten{});
  if (kind == "add") return Operation(op::Add{});
  if (kind == "concat") return Operation(op::Concat{});
  return Operation(op::GlobalAveragePool{});
}

bool joins(const Operation& operation) {
  return std::holds_alternative<op::Add>(operation) || std::holds_alternative<op::Concat>(operation);
}

Result<void> read_inputs(Fields& fields, const std::string& kind, const YamlNode& value, const Names& names,
                         std::size_t number, LayerList::Layer& layer) {
  if (joins(layer.operation)) {
    for (const std::string& name : TRY(yaml::as_text_list(value, fields.path(kind))))
      layer.inputs.push_back(TRY(names.find(value, name)));
    if (layer.inputs.size() < 2 || (kind == "add" && layer.inputs.size() > 2))
      return yaml::error_at(value, fmt::format("{} takes the names of {} layers", fields.path(kind),
                                               kind == "add" ? "two" : "two or more"));
    return {};
  }
  const YamlNode* from = fields.find("from");
  layer.inputs.push_back(
      from == nullptr ? number - 1 : TRY(names.find(*from, TRY(yaml::as_text(*from, fields.path("from"))))));
  return {};
}

// The one key of the map that says what the layer is.
Result<std::string> kind_of(const YamlNode& item, const std::string& path) {
  if (item.kind == yaml::Kind::scalar && !is_kind(item.scalar)) return unknown_kind(item, item.scalar, path);
  if (item.kind == yaml::Kind::scalar) return item.scalar;
  if (item.kind != yaml::Kind::map)
    return yaml::error_at(item, fmt::format("{} must be a layer: a word or a map", path));
  std::string found;
  for (const auto& [key, value] : item.entries) {
    if (!is_kind(key)) continue;
    if (!found.empty())
      return yaml::error_at(item, fmt::format("{} is two layers: {} and {}", path, found, key));
    found = key;
  }
  if (found.empty() && item.entries.empty())
    return yaml::error_at(item, fmt::format("{} names no layer", path), "layers: " + join(kinds(), ", "));
  if (found.empty()) return unknown_kind(item, item.entries.front().first, path);
  return found;
}

Result<LayerList::Layer> read_layer(const YamlNode& item, const std::string& path, std::size_t number,
                                    Names& names) {
  static const YamlNode nothing;
  const std::string kind = TRY(kind_of(item, path));
  Fields fields = TRY(Fields::of(item.kind == yaml::Kind::map ? item : nothing, path));
  const YamlNode* value = fields.find(kind);
  const YamlNode& setting = value == nullptr ? item : *value;
  LayerList::Layer layer;
  layer.operation = TRY(read_operation(fields, kind, setting, layer));
  TRY(read_inputs(fields, kind, setting, names, number, layer));
  if (const YamlNode* name = fields.find("name")) {
    layer.name = TRY(yaml::as_text(*name, fields.path("name")));
    if (!is_shell_identifier(layer.name))
      return yaml::error_at(*name, fmt::format("a layer cannot be called '{}'", layer.name),
                            "letters, digits and _");
    TRY(names.add(*name, layer.name, number));
  }
  TRY(fields.finish());
  return layer;
}

// Every layer but the last leads somewhere.
Result<void> check_read(const YamlNode& items, const std::string& path, const LayerList& list) {
  std::vector<bool> is_read(list.layers.size() + 1);  // by number; 0 is the image
  for (const LayerList::Layer& layer : list.layers)
    for (const std::size_t input : layer.inputs) is_read[input] = true;
  for (std::size_t number = 1; number < list.layers.size(); ++number)
    if (!is_read[number])
      return yaml::error_at(items.items[number - 1], fmt::format("no layer reads {}[{}]", path, number - 1),
                            "leave it out, or name it and read it by 'from', 'add' or 'concat'");
  return {};
}

Value apply(GraphBuilder& g, const LayerList::Layer& layer, const std::string& name,
            const std::vector<Value>& in, std::int64_t classes) {
  const auto& operation = layer.operation;
  if (const auto* spec = std::get_if<op::Convolution>(&operation)) return g.convolution(name, in[0], *spec);
  if (const auto* spec = std::get_if<op::TransposedConvolution>(&operation))
    return g.transposed_convolution(name, in[0], *spec);
  if (const auto* spec = std::get_if<op::LeakyRelu>(&operation)) return g.leaky_relu(in[0], spec->slope);
  if (std::holds_alternative<op::Tanh>(operation)) return g.tanh(in[0]);
  if (const auto* spec = std::get_if<op::FullyConnected>(&operation))
    return g.fully_connected(name, in[0], layer.scores ? classes : spec->outputs);
  if (const auto* spec = std::get_if<op::MaxPool>(&operation)) return g.max_pool(in[0], *spec);
  if (const auto* spec = std::get_if<op::AveragePool>(&operation)) return g.average_pool(in[0], *spec);
  if (const auto* spec = std::get_if<op::LocalResponseNorm>(&operation))
    return g.local_response_norm(in[0], *spec);
  if (const auto* spec = std::get_if<op::Dropout>(&operation)) return g.dropout(in[0], spec->probability);
  if (std::holds_alternative<op::BatchNorm>(operation)) return g.batch_norm(name, in[0]);
  if (std::holds_alternative<op::Relu>(operation)) return g.relu(in[0]);
  if (std::holds_alternative<op::Flatten>(operation)) return g.flatten(in[0]);
  if (std::holds_alternative<op::Add>(operation)) return g.add(in[0], in[1]);
  if (std::holds_alternative<op::Concat>(operation)) return g.concat(in);
  return g.global_average_pool(in[0]);
}

}  // namespace

Result<LayerList> read_layer_list(const YamlNode& node, const std::string& path) {
  Fields fields = TRY(Fields::of(node, path));
  LayerList out;
  out.name = TRY(fields.text_or("name", "own"));
  static const std::vector<std::string> losses{"softmax", "sigmoid"};
  out.loss = static_cast<LayerList::LossKind>(TRY(fields.choice_or("loss", 0, losses)));
  const YamlNode* layers = TRY(fields.require("layers"));
  TRY(fields.finish());
  if (layers->kind != yaml::Kind::list || layers->items.empty())
    return yaml::error_at(*layers, fields.path("layers") + " must be a list of layers");
  Names names;
  for (std::size_t i = 0; i < layers->items.size(); ++i)
    out.layers.push_back(
        TRY(read_layer(layers->items[i], fmt::format("{}[{}]", fields.path("layers"), i), i + 1, names)));
  TRY(check_read(*layers, fields.path("layers"), out));
  if (out.loss == LayerList::LossKind::softmax && !out.layers.back().scores)
    return yaml::error_at(layers->items.back(), "the last layer must give a score for each class",
                          "end with {fully-connected: classes}");
  return out;
}

Result<Graph> build_layers(const LayerList& list, const InputShape& input) {
  GraphBuilder g(list.name, input);
  std::vector<Value> values{g.input()};
  for (const LayerList::Layer& layer : list.layers) {
    std::vector<Value> inputs;
    for (const std::size_t from : layer.inputs) inputs.push_back(values[from]);
    const std::string name = layer.name.empty() ? fmt::format("layer{}", values.size()) : layer.name;
    values.push_back(apply(g, layer, name, inputs, input.classes));
  }
  if (list.loss == LayerList::LossKind::sigmoid)
    g.sigmoid_cross_entropy(values.back(), op::SigmoidCrossEntropy::Target::labels);
  else
    g.softmax_cross_entropy(values.back());
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
