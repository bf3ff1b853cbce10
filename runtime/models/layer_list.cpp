// Reading: each layer is a word ("relu") or a map whose one layer key names it ("convolution: 32, kernel:
// 5").
#include "runtime/models/layer_list.hpp"

#include "runtime/graph/operators/traits.hpp"
#include "src/base/fields.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using YamlNode = yaml::Node;

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const OperatorTraits* traits : operators())
    if (!traits->layer.name.empty()) names.emplace_back(traits->layer.name);
  return names;
}

// Null where no layer is called so.
const OperatorTraits* find_kind(std::string_view word) {
  for (const OperatorTraits* traits : operators())
    if (!word.empty() && traits->layer.name == word) return traits;
  return nullptr;
}

// What PyTorch, Keras and Caffe call our layers.
std::vector<OtherName> other_names() {
  std::vector<OtherName> out;
  for (const OperatorTraits* traits : operators())
    for (const std::string_view other : traits->layer.other_names) out.push_back({other, traits->layer.name});
  return out;
}

// `word` is no layer of ours.
tl::unexpected<Error> unknown_kind(const YamlNode& node, const std::string& word, const std::string& path) {
  const std::vector<OtherName> others = other_names();
  const std::string_view ours = our_name(word, others);
  return yaml::error_at(node, fmt::format("unknown layer '{}' in {}", word, path),
                        ours.empty() ? did_you_mean(word, kinds()) : fmt::format("did you mean '{}'?", ours));
}

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

// Those that the layer names as its setting.
Result<void> read_joined(Fields& fields, const LayerRule& kind, Inputs wanted, const YamlNode& value,
                         const Names& names, LayerList::Layer& layer) {
  const std::string path = fields.path(kind.name);
  for (const std::string& name : TRY(yaml::as_text_list(value, path)))
    layer.inputs.push_back(TRY(names.find(value, name)));
  if (layer.inputs.size() < 2 || (wanted == Inputs::two && layer.inputs.size() > 2))
    return yaml::error_at(value, fmt::format("{} takes the names of {} layers", path,
                                             wanted == Inputs::two ? "two" : "two or more"));
  return {};
}

// The layer before, unless another one is named.
Result<void> read_input(Fields& fields, const Names& names, std::size_t number, LayerList::Layer& layer) {
  const YamlNode* from = fields.find("from");
  layer.inputs.push_back(
      from == nullptr ? number - 1 : TRY(names.find(*from, TRY(yaml::as_text(*from, fields.path("from"))))));
  return {};
}

// The one key of the map that says what the layer is.
Result<const OperatorTraits*> kind_of(const YamlNode& item, const std::string& path) {
  if (item.kind == yaml::Kind::scalar) {
    if (const OperatorTraits* kind = find_kind(item.scalar)) return kind;
    return unknown_kind(item, item.scalar, path);
  }
  if (item.kind != yaml::Kind::map)
    return yaml::error_at(item, fmt::format("{} must be a layer: a word or a map", path));
  const OperatorTraits* found = nullptr;
  for (const auto& [key, value] : item.entries) {
    const OperatorTraits* kind = find_kind(key);
    if (kind == nullptr) continue;
    if (found != nullptr)
      return yaml::error_at(item, fmt::format("{} is two layers: {} and {}", path, found->layer.name, key));
    found = kind;
  }
  if (found == nullptr && item.entries.empty())
    return yaml::error_at(item, fmt::format("{} names no layer", path), "layers: " + join(kinds(), ", "));
  if (found == nullptr) return unknown_kind(item, item.entries.front().first, path);
  return found;
}

Result<void> read_name(Fields& fields, std::size_t number, Names& names, LayerList::Layer& layer) {
  const YamlNode* name = fields.find("name");
  if (name == nullptr) return {};
  layer.name = TRY(yaml::as_text(*name, fields.path("name")));
  if (!is_shell_identifier(layer.name))
    return yaml::error_at(*name, fmt::format("a layer cannot be called '{}'", layer.name),
                          "letters, digits and _");
  return names.add(*name, layer.name, number);
}

Result<LayerList::Layer> read_layer(const YamlNode& item, const std::string& path, std::size_t number,
                                    Names& names) {
  static const YamlNode nothing;
  const OperatorTraits& kind = *TRY(kind_of(item, path));
  Fields fields = TRY(Fields::of(item.kind == yaml::Kind::map ? item : nothing, path));
  const YamlNode* value = fields.find(kind.layer.name);
  const YamlNode& setting = value == nullptr ? item : *value;
  LayerList::Layer layer{.operation = TRY(kind.layer.read(fields, setting)), .name = {}, .inputs = {}};
  if (kind.inputs == Inputs::one)
    TRY(read_input(fields, names, number, layer));
  else
    TRY(read_joined(fields, kind.layer, kind.inputs, setting, names, layer));
  TRY(read_name(fields, number, names, layer));
  TRY(fields.finish());
  return layer;
}

bool gives_scores(const Operation& operation) {
  const auto rule = traits_of(operation).gives_scores;
  return rule != nullptr && rule(operation);
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

}  // namespace

Result<LayerList> read_layer_list(const YamlNode& node, const std::string& path) {
  Fields fields = TRY(Fields::of(node, path));
  LayerList out;
  out.name = TRY(fields.text_or("name", "own"));
  if (const YamlNode* settings = fields.find("transformer")) {
    out.transformer = TRY(read_transformer(*settings, fields.path("transformer")));
    TRY(fields.finish());
    return out;
  }
  static const std::vector<std::string> losses{"softmax", "sigmoid", "vocabulary"};
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
  if (out.loss == LayerList::LossKind::softmax && !gives_scores(out.layers.back().operation))
    return yaml::error_at(layers->items.back(), "the last layer must give a score for each class",
                          "end with {fully-connected: classes}");
  return out;
}

Result<Graph> build_layers(const LayerList& list, const InputShape& input) {
  if (list.transformer) return build_transformer(list.name, *list.transformer, input);
  GraphBuilder g(list.name, input);
  std::vector<Value> values{g.input()};
  for (const LayerList::Layer& layer : list.layers) {
    std::vector<Value> inputs;
    for (const std::size_t from : layer.inputs) inputs.push_back(values[from]);
    const bool learns = traits_of(layer.operation).parameters != nullptr;
    const std::string name = layer.name.empty() ? fmt::format("layer{}", values.size()) : layer.name;
    values.push_back(g.apply(learns ? name : "", layer.operation, std::move(inputs)));
  }
  if (list.loss == LayerList::LossKind::sigmoid)
    g.sigmoid_cross_entropy(values.back(), op::SigmoidCrossEntropy::Target::labels);
  else if (list.loss == LayerList::LossKind::vocabulary)
    g.vocabulary_loss("head", values.back(), {}, Weights::own);
  else
    g.softmax_cross_entropy(values.back());
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
