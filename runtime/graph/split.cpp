// See split.hpp. Of each value of the model a rank has all, its part of the features, or its slice of the
// positions; which of them the operators that give it say.
#include "runtime/graph/split.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/counted.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {
namespace {

SplitForm form_of(const Node& node) {
  const OperatorTraits& traits = traits_of(node.operation);
  if (traits.split != nullptr) return traits.split(node.operation);
  return traits.elementwise ? SplitForm::follows : SplitForm::whole;
}

bool divides(SplitForm form) {
  return form != SplitForm::whole && form != SplitForm::follows && form != SplitForm::positions;
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
    if (rank_.slices() && !has_slices_)
      return refuse(
          fmt::format("parallel.sequence is on, and model '{}' has no sequences that are summed over "
                      "a tensor group",
                      whole_.model),
          "set parallel.sequence to off");
    return std::move(out_);
  }

 private:
  // What this rank has of a value of the model, and where.
  enum class Has { all, features, positions };
  struct Place {
    Value value;
    Has has = Has::all;
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

  // Of how many of its inputs the rank has that.
  std::size_t count(const Node& node, Has has) const {
    return static_cast<std::size_t>(
        std::count_if(node.inputs.begin(), node.inputs.end(),
                      [this, has](Value value) { return places_[value.get()].has == has; }));
  }

  // Whole values only, or divided ones only, as the form reads them.
  Result<bool> reads_divided(const Node& node, SplitForm form) const {
    const std::size_t divided = count(node, Has::features);
    const bool any = divided > 0, all = any && divided == node.inputs.size();
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

  // Each position by itself, of slices only. Layers that are divided read whole values, which are gathered.
  Result<bool> reads_slices(const Node& node, SplitForm form) const {
    const std::size_t slices = count(node, Has::positions);
    if (slices == 0 || copies(node, form)) return false;
    const bool can =
        form == SplitForm::follows || (form == SplitForm::whole && traits_of(node.operation).by_position);
    if (can && slices == node.inputs.size()) return true;
    return refuse(fmt::format("model '{}', layer {}: it reads all positions of a sequence, and with "
                              "parallel.sequence each rank has a slice of them",
                              whole_.model, name_of(node)),
                  "write 'split: columns' in the layer before, or set parallel.sequence to off");
  }

  Result<void> add(const Node& node, std::size_t index) {
    SplitForm form = form_of(node);
    const bool reads = TRY(reads_divided(node, form)), slices = TRY(reads_slices(node, form));
    if ((form == SplitForm::heads || form == SplitForm::follows) && !reads) form = SplitForm::whole;
    if (slices) form = SplitForm::positions;
    Node made = node;
    for (std::size_t i = 0; i < made.inputs.size(); ++i) made.inputs[i] = input(node, i, form);
    if (form != SplitForm::whole) made.part = part_of(node, index, form);
    if (made.part && !slices) {
      TRY(check_reader(node, index));
      TRY(divide(made));
    }
    divided_any_ = divided_any_ || divides(form);
    const bool gives = form == SplitForm::columns || reads;
    const bool is_divided = gives && form != SplitForm::rows;
    if (is_divided) made.shape.channels /= rank_.parts;
    if (slices) made.shape.height /= rank_.parts;
    const bool is_term = form == SplitForm::rows || (form == SplitForm::vocabulary && !is_loss(node));
    out_.nodes.push_back(std::move(made));
    Has has = is_divided ? Has::features : slices ? Has::positions : Has::all;
    if (is_term) has = TRY(append_sum(node));
    places_.push_back({last(), has});
    return {};
  }

  // Of the terms that the last node gives.
  Result<Has> append_sum(const Node& of) {
    if (!rank_.slices() || of.shape.axes != Axes::sequence) {
      append(op::TensorSum{}, last(), of.shape);
      return Has::all;
    }
    const std::int64_t positions = of.shape.positions();
    if (positions % rank_.parts != 0)
      return refuse(
          fmt::format("model '{}', layer {}: parallel.sequence is on, and sequences of {} cannot be "
                      "divided by {} ranks of a tensor group",
                      whole_.model, name_of(of), counted(positions, "position"), rank_.parts),
          "choose a train.data.context that parallel.tensor divides, or set parallel.sequence to off");
    Shape slice = of.shape;
    slice.height /= rank_.parts;
    append_border(op::TensorScatter{}, last(), slice);
    has_slices_ = true;
    return Has::positions;
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

  // Layers of which each rank gives a term of the gradient of what they read.
  static bool copies(const Node& node, SplitForm form) {
    return form == SplitForm::columns || (form == SplitForm::vocabulary && is_loss(node));
  }

  // Tokens have no gradient to be summed.
  Value input(const Node& node, std::size_t which, SplitForm form) {
    Place& place = places_[node.inputs[which].get()];
    if (!copies(node, form)) return place.value;
    if (!place.copy) {
      if (place.has == Has::positions)
        append_border(op::TensorGather{}, place.value, input_shape(node));
      else
        append(op::TensorCopy{}, place.value, input_shape(node));
      place.copy = last();
    }
    return *place.copy;
  }

  Value last() const { return Value(out_.nodes.size() - 1); }
  void append(const Operation& operation, Value from, const Shape& shape) {
    out_.nodes.push_back({.name = {}, .operation = operation, .inputs = {from}, .shape = shape});
  }

  // Between slices and whole values.
  void append_border(const Operation& operation, Value from, const Shape& shape) {
    append(operation, from, shape);
    out_.nodes.back().part = NodePart{.form = SplitForm::positions,
                                      .part = rank_.part,
                                      .parts = rank_.parts,
                                      .whole = operation,
                                      .from = shape};
  }

  const Graph& whole_;
  TensorRank rank_;
  std::vector<std::vector<std::size_t>> readers_;
  Graph out_;
  std::vector<Place> places_;
  bool divided_any_ = false, has_slices_ = false;
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
