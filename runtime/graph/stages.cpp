// See stages.hpp. Activations are fused first: a cut between a layer and its activation would be another
// model to an engine.
#include "runtime/graph/stages.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "runtime/graph/fuse.hpp"
#include "runtime/graph/operators/traits.hpp"
#include "runtime/graph/roles.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

tl::unexpected<Error> refuse(const Graph& graph, std::string_view what, std::string hint) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("model '{}' {}", graph.model, what),
                    .hint = std::move(hint)});
}

// In numbers, each of a multiplication of a forward pass: products, values, and parameters, which an update
// passes over once for all samples of a batch. Of a divided node those of the whole one.
double cost_of(const Graph& graph, const Node& node) {
  const Operation& operation = node.part ? node.part->whole : node.operation;
  double out = 4 * static_cast<double>(node.shape.elements());
  for (const ParameterRule& rule : parameters_of(graph, node))
    out += static_cast<double>(elements_of(rule.of ? rule.of->whole : rule.shape));
  const auto products = traits_of(operation).products;
  if (products == nullptr) return out;
  const Shape from = node.part ? node.part->from : graph.nodes[node.inputs[0].get()].shape;
  return out + static_cast<double>(products(operation, from, node.shape));
}

bool learns(const Node& node) {
  return traits_of(node.operation).parameters != nullptr;
}

// The nodes behind which one value alone goes on: that of the node.
std::vector<std::size_t> possible_places(const Graph& graph) {
  std::vector<std::size_t> out;
  std::size_t oldest = graph.nodes.size();  // of the values that later nodes read
  for (std::size_t node = graph.nodes.size(); node-- > 1;) {
    if (oldest == node) out.push_back(node);
    for (const Value value : graph.nodes[node].inputs) oldest = std::min(oldest, value.get());
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Result<void> check_losses(const Graph& graph) {
  const auto is_before_end = [&graph](const Node& node) {
    return is_loss(node) && &node != &graph.nodes.back();
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_before_end)) return {};
  return refuse(graph, "has auxiliary losses, which pipelines do not support",
                "remove parallel.pipeline, or choose a model with one loss");
}

// Values by their numbers in the stage, whose first node of the model is `begin`.
class Stage {
 public:
  Stage(const Graph& whole, std::size_t begin, std::size_t end) : whole_(whole), begin_(begin), end_(end) {
    out_ = {.model = whole.model, .nodes = {}, .stage = StageFacts{}};
  }

  Result<Graph> build() {
    if (begin_ > 0) receive();
    for (std::size_t node = begin_; node < end_; ++node) add(node);
    if (end_ < whole_.nodes.size())
      append(
          {.name = {}, .operation = op::StageOutput{}, .inputs = {last()}, .shape = out_.nodes.back().shape});
    out_.stage->dropouts_before = masks_before(whole_, begin_);
    TRY(find_tied());
    return std::move(out_);
  }

 private:
  std::vector<Node>::const_iterator at(std::size_t node) const {
    return whole_.nodes.begin() + static_cast<std::ptrdiff_t>(node);
  }
  Value last() const { return Value(out_.nodes.size() - 1); }
  void append(Node node) { out_.nodes.push_back(std::move(node)); }

  void receive() {
    const auto* const input = std::get_if<op::Input>(&whole_.nodes[0].operation);
    op::StageInput border{.kind = SampleKind::image, .rows = whole_.nodes[0].shape};
    if (input != nullptr) border.kind = input->kind;
    append({.name = {}, .operation = border, .inputs = {}, .shape = whole_.nodes[begin_ - 1].shape});
  }

  void add(std::size_t number) {
    Node node = whole_.nodes[number];
    const std::size_t moved = begin_ > 0 ? begin_ - 1 : 0;
    for (Value& value : node.inputs) value = Value(value.get() - moved);
    if (node.weights != Weights::own && learns(node) && owner_of(node) < begin_) node.weights = Weights::tied;
    append(std::move(node));
  }

  std::size_t owner_of(const Node& node) const {
    const auto found = std::find_if(whole_.nodes.begin(), whole_.nodes.end(), [&](const Node& other) {
      return other.weights == Weights::own && other.name == node.name && learns(other);
    });
    return static_cast<std::size_t>(found - whole_.nodes.begin());
  }

  // Only the first and the last stage can have such: an embedding, and the loss that shares its weights.
  Result<void> find_tied() {
    for (std::size_t number = 0; number < whole_.nodes.size(); ++number) {
      const Node& node = whole_.nodes[number];
      if (node.weights == Weights::own || !learns(node)) continue;
      const std::size_t owner = owner_of(node);
      const bool is_here = number >= begin_ && number < end_;
      const bool owner_is_here = owner >= begin_ && owner < end_;
      if (is_here == owner_is_here) continue;
      if (number + 1 != whole_.nodes.size() || node.weights == Weights::frozen)
        return refuse(whole_,
                      fmt::format("shares the weights of layer {} between stages of a pipeline", node.name),
                      "remove parallel.pipeline, or choose a model whose layers share no weights");
      for (const ParameterRule& rule : parameters_of(whole_, node))
        out_.stage->tied.push_back(node.name + std::string(rule.part));
    }
    return {};
  }

  const Graph& whole_;
  std::size_t begin_, end_;
  Graph out_;
};

// The cuts whose most expensive stage is the cheapest, by dynamic programming over the possible places.
class Cuts {
 public:
  Cuts(const Graph& graph, std::vector<std::size_t> places) : places_(std::move(places)) {
    places_.push_back(graph.nodes.size() - 1);
    std::size_t node = 0;
    for (const std::size_t place : places_) {
      double cost = ends_.empty() ? 0 : ends_.back().cost;
      int layers = ends_.empty() ? 0 : ends_.back().layers;
      for (; node <= place; ++node) {
        cost += cost_of(graph, graph.nodes[node]);
        layers += learns(graph.nodes[node]) ? 1 : 0;
      }
      ends_.push_back({cost, layers});
    }
  }

  /// Behind which nodes; empty where there are not as many stages with parameters.
  std::vector<std::size_t> best(int stages) const {
    const std::size_t count = ends_.size();
    std::vector<std::vector<std::size_t>> from;  // of each number of stages: where the last one begins
    std::vector<double> worst(count);
    for (std::size_t end = 0; end < count; ++end) worst[end] = cost(0, end + 1);
    for (int stage = 1; stage < stages; ++stage) {
      std::vector<double> next(count, kNone);
      std::vector<std::size_t>& begins = from.emplace_back(count, std::size_t{0});
      for (std::size_t end = 1; end < count; ++end)
        for (std::size_t begin = 1; begin <= end; ++begin)
          if (const double here = std::max(worst[begin - 1], cost(begin, end + 1)); here < next[end])
            next[end] = here, begins[end] = begin;
      worst = std::move(next);
    }
    if (worst.back() == kNone) return {};
    std::vector<std::size_t> out;
    std::size_t end = count - 1;
    for (std::size_t stage = from.size(); stage-- > 0;) {
      end = from[stage][end] - 1;
      out.push_back(places_[end]);
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  struct End {
    double cost;
    int layers;  // with parameters
  };
  double cost(std::size_t begin, std::size_t end) const {
    const End before = begin == 0 ? End{0, 0} : ends_[begin - 1];
    const End& last = ends_[end - 1];
    return last.layers == before.layers ? kNone : last.cost - before.cost;
  }

  std::vector<std::size_t> places_;
  std::vector<End> ends_;  // up to each place
};

// "h", "h.0", "h.0.ln_1"
std::vector<std::string> prefixes(const std::string& name) {
  std::vector<std::string> out;
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
    out.push_back(name.substr(0, dot));
  out.push_back(name);
  return out;
}

bool is_called(const Node& node, const std::string& layer) {
  return learns(node) && (node.name == layer || node.name.starts_with(layer + "."));
}

// The layers with which a stage can begin; of a block of layers its name alone.
std::vector<std::string> possible_layers(const Graph& graph, const std::vector<std::size_t>& places) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  auto place = places.begin();
  for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
    if (!learns(graph.nodes[index])) continue;
    const bool can_begin = !seen.empty() && place != places.end() && *place < index;
    while (place != places.end() && *place < index) ++place;
    std::string shortest;  // that no layer before has
    for (const std::string& name : prefixes(graph.nodes[index].name))
      if (seen.insert(name).second && shortest.empty()) shortest = name;
    if (can_begin && !shortest.empty()) out.push_back(shortest);
  }
  return out;
}

// The last possible place before the layer, behind the layers before it.
Result<std::size_t> place_before(const Graph& graph, const std::vector<std::size_t>& places,
                                 const StageCut& cut) {
  const auto refuse_cut = [&](std::string what, std::string hint) {
    return fail(Error{
        .kind = ErrorKind::input, .what = std::move(what), .where = cut.where, .hint = std::move(hint)});
  };
  const auto first = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&cut](const Node& node) { return is_called(node, cut.layer); });
  if (first == graph.nodes.end())
    return refuse_cut(fmt::format("train.pipeline.cut: model '{}' has no layer '{}'", graph.model, cut.layer),
                      did_you_mean(cut.layer, possible_layers(graph, places)));
  const auto node = static_cast<std::size_t>(first - graph.nodes.begin());
  const auto after = std::lower_bound(places.begin(), places.end(), node);
  const bool has_layers_before = std::any_of(graph.nodes.begin(), first, learns);
  if (has_layers_before && after != places.begin() &&
      std::none_of(graph.nodes.begin() + static_cast<std::ptrdiff_t>(*(after - 1)) + 1, first, learns))
    return *(after - 1);
  return refuse_cut(
      fmt::format("train.pipeline.cut: no stage can begin with layer '{}' of model '{}'", cut.layer,
                  graph.model),
      fmt::format(
          "a stage can begin only where a single tensor is passed on, after another layer, as with {}",
          fmt::join(possible_layers(graph, places), ", ")));
}

}  // namespace

Result<std::vector<std::size_t>> places_of_cuts(const Graph& fused, std::span<const StageCut> cuts) {
  const std::vector<std::size_t> possible = possible_places(fused);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const std::size_t place = TRY(place_before(fused, possible, cuts[i]));
    if (i > 0 && place <= out.back())
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("train.pipeline.cut: layer '{}' is not behind '{}' in model '{}'",
                                            cuts[i].layer, cuts[i - 1].layer, fused.model),
                        .where = cuts[i].where,
                        .hint = "name the first layer of each stage but the first, in the model's order"});
    out.push_back(place);
  }
  return out;
}

Result<std::vector<std::size_t>> places_of_cuts(const Graph& fused, int stages) {
  std::vector<std::size_t> out = Cuts(fused, possible_places(fused)).best(stages);
  if (out.size() + 1 == static_cast<std::size_t>(stages)) return out;
  return refuse(fused, fmt::format("cannot be cut into {} stages with parameters", stages),
                "set a smaller parallel.pipeline: a stage can end only where a single tensor is passed on");
}

Result<Graph> cut_graph(const Graph& whole, const StageRank& rank, std::span<const StageCut> cuts) {
  const Graph fused = fuse(whole);
  TRY(check_losses(fused));
  std::vector<std::size_t> begins = {0};
  const auto places = cuts.empty() ? places_of_cuts(fused, rank.stages) : places_of_cuts(fused, cuts);
  for (const std::size_t place : TRY(places)) begins.push_back(place + 1);
  begins.push_back(fused.nodes.size());
  const auto stage = static_cast<std::size_t>(rank.stage);
  return Stage(fused, begins[stage], begins[stage + 1]).build();
}

}  // namespace dlrun::runtime
