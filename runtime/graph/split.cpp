// See split.hpp. Each value of the model is whole or divided by its features; a divided one of it is made as
// the operators that give it say.
#include "runtime/graph/split.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {
namespace {

SplitForm form_of(const Node& node) {
  const OperatorTraits& traits = traits_of(node.operation);
  if (traits.split != nullptr) return traits.split(node.operation);
  return traits.elementwise ? SplitForm::follows : SplitForm::whole;
}

bool divides(SplitForm form) {
  return form != SplitForm::whole && form != SplitForm::follows;
}

class Splitting {
 public:
  Splitting(const Graph& whole, const TensorRank& rank)
      : whole_(whole),
        rank_(rank),
        readers_(readers(whole)),
        out_{.model = whole.model, .nodes = {}, .stage = {}} {}

  Result<Graph> run() {
    for (std::size_t index = 0; index < whole_.nodes.size(); ++index) TRY(add(whole_.nodes[index], index));
    if (!divided_any_)
      return refuse(
          fmt::format("model '{}' has no layer that a tensor group can divide", whole_.model),
          "set parallel.tensor to 1, or write 'split: columns' and 'split: rows' in the layers of a "
          "model of your own");
    return std::move(out_);
  }

 private:
  // Where a value of the model is in the part.
  struct Place {
    Value value;
    bool is_divided = false;
    std::optional<Value> copy = {};  // for those that divide it
  };

  static tl::unexpected<Error> refuse(std::string what, std::string hint) {
    return fail(Error{.kind = ErrorKind::input, .what = std::move(what), .hint = std::move(hint)});
  }

  const Shape& input_shape(const Node& node) const { return whole_.nodes[node.inputs[0].get()].shape; }
  static std::string name_of(const Node& node) {
    return node.name.empty() ? operation_name(node.operation) : node.name;
  }

  // Attention alone, of those that read it, tells what the sections of a value are.
  std::vector<std::int64_t> sections_of(std::size_t index) const {
    const Node& node = whole_.nodes[index];
    if (readers_[index].size() == 1) {
      const Node& reader = whole_.nodes[readers_[index][0]];
      if (const auto sections = traits_of(reader.operation).sections)
        return sections(reader.operation, node.shape);
    }
    return {node.shape.features()};
  }

  NodePart part_of(const Node& node, std::size_t index, SplitForm form) const {
    NodePart out{.form = form, .part = rank_.part, .parts = rank_.parts, .whole = node.operation};
    if (!node.inputs.empty()) out.from = input_shape(node);
    if (form == SplitForm::columns) out.sections = sections_of(index);
    return out;
  }

  // Heads that cannot be divided are a better reason than the numbers that they make in the layer before.
  Result<void> check_reader(const Node& node, std::size_t index) const {
    if (readers_[index].size() != 1) return {};
    Node reader = whole_.nodes[readers_[index][0]];
    if (form_of(reader) != SplitForm::heads) return {};
    const std::string why =
        traits_of(reader.operation)
            .divide(reader.operation, node.shape, part_of(reader, readers_[index][0], {}));
    return why.empty() ? Result<void>{} : cannot_divide(node, why);
  }

  Result<void> cannot_divide(const Node& node, const std::string& why) const {
    return refuse(
        fmt::format("model '{}', layer {}: {} ranks of a tensor group", whole_.model, name_of(node), why),
        "choose a parallel.tensor that divides it");
  }

  // Whole values only, or divided ones only, as the form reads them.
  Result<bool> reads_divided(const Node& node, SplitForm form) const {
    const auto is_divided = [this](Value value) { return places_[value.get()].is_divided; };
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), is_divided);
    const bool all = any && std::all_of(node.inputs.begin(), node.inputs.end(), is_divided);
    if (form == SplitForm::rows && !all)
      return refuse(
          fmt::format("model '{}', layer {}: 'split: rows' reads divided features, and what it reads "
                      "is whole",
                      whole_.model, name_of(node)),
          "write 'split: columns' in the layer before");
    const bool can = form == SplitForm::rows || form == SplitForm::heads || form == SplitForm::follows;
    if (any && (!can || !all))
      return refuse(fmt::format("model '{}', layer {}: it reads whole features, and what it reads is divided "
                                "by 'split: columns'",
                                whole_.model, name_of(node)),
                    "write 'split: rows' in a layer between them");
    return any;
  }

  Result<void> add(const Node& node, std::size_t index) {
    SplitForm form = form_of(node);
    const bool reads = TRY(reads_divided(node, form));
    if ((form == SplitForm::heads || form == SplitForm::follows) && !reads) form = SplitForm::whole;
    Node made = node;
    for (std::size_t i = 0; i < made.inputs.size(); ++i) made.inputs[i] = input(node, i, form);
    if (form != SplitForm::whole) {
      TRY(check_reader(node, index));
      made.part = part_of(node, index, form);
      TRY(divide(made));
    }
    divided_any_ = divided_any_ || divides(form);
    const bool gives = form == SplitForm::columns || reads;
    const bool is_divided = gives && form != SplitForm::rows;
    if (is_divided) made.shape.channels /= rank_.parts;
    const bool is_term = form == SplitForm::rows || (form == SplitForm::vocabulary && !is_loss(node));
    out_.nodes.push_back(std::move(made));
    if (is_term) append(op::TensorSum{}, last(), node.shape);
    places_.push_back({last(), is_divided});
    return {};
  }

  Result<void> divide(Node& made) const {
    const NodePart& part = *made.part;
    for (const std::int64_t section : part.sections)
      if (section % part.parts != 0)
        return cannot_divide(made, fmt::format("{} outputs cannot be divided by {}", section, part.parts));
    const auto rule = traits_of(made.operation).divide;
    if (rule == nullptr) return {};
    const std::string why = rule(made.operation, part.from, part);
    return why.empty() ? Result<void>{} : cannot_divide(made, why);
  }

  // Tokens have no gradient to be summed.
  Value input(const Node& node, std::size_t which, SplitForm form) {
    Place& place = places_[node.inputs[which].get()];
    const bool copies = form == SplitForm::columns || (form == SplitForm::vocabulary && is_loss(node));
    if (!copies) return place.value;
    if (!place.copy) {
      append(op::TensorCopy{}, place.value, input_shape(node));
      place.copy = last();
    }
    return *place.copy;
  }

  Value last() const { return Value(out_.nodes.size() - 1); }
  void append(const Operation& operation, Value from, const Shape& shape) {
    out_.nodes.push_back({.name = {}, .operation = operation, .inputs = {from}, .shape = shape});
  }

  const Graph& whole_;
  TensorRank rank_;
  std::vector<std::vector<std::size_t>> readers_;
  Graph out_;
  std::vector<Place> places_;
  bool divided_any_ = false;
};

}  // namespace

Result<Graph> split_graph(const Graph& whole, const TensorRank& rank) {
  return Splitting(whole, rank).run();
}

bool has_split(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    const SplitForm form = form_of(node);
    return form == SplitForm::columns || form == SplitForm::rows;
  });
}

void take_part(ParameterRule& rule, const NodePart& part) {
  const bool is_matrix = rule.shape.size() > 1;
  TensorPart of{.whole = rule.shape};
  if (part.form == SplitForm::columns) {
    of.ranges = divided_sections(part.sections, part.part, part.parts);
  } else if (part.form == SplitForm::rows && is_matrix) {
    of.axis = 1;
    of.ranges = divided_sections(std::vector{rule.shape[1]}, part.part, part.parts);
  } else if (part.form == SplitForm::vocabulary && rule.part == ".weight") {
    of.ranges = divided_sections(std::vector{rule.shape[0]}, part.part, part.parts);
  } else {
    return;
  }
  rule.shape = of.shape();
  if (of.axis == 1) rule.channels /= part.parts;
  if (!is_matrix) rule.channels = rule.shape[0];
  rule.of = std::move(of);
}

}  // namespace dlrun::runtime
