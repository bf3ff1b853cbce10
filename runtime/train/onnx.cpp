// See onnx.hpp. The numbers of fields are those of onnx.proto.
#include "runtime/train/onnx.hpp"

#include <algorithm>
#include <set>

#include "runtime/base/protobuf.hpp"
#include "runtime/graph/operators/traits.hpp"
#include "src/base/strings.hpp"
#include "src/base/version.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::uint64_t kIrVersion = 8, kFloat = 1;
// The kinds of an attribute.
constexpr std::uint64_t kFloatKind = 1, kIntKind = 2, kStringKind = 3, kIntsKind = 7;

constexpr const char* kOtherFile = "write .safetensors: --export FILE.safetensors";

ProtoWriter attribute_of(const OnnxAttribute& attribute) {
  ProtoWriter out;
  out.bytes(1, attribute.name);
  const auto put = [&]<class Value>(const Value& value) {
    if constexpr (std::is_same_v<Value, std::int64_t>) {
      out.varint(3, static_cast<std::uint64_t>(value)).varint(20, kIntKind);
    } else if constexpr (std::is_same_v<Value, float>) {
      out.f32(2, value).varint(20, kFloatKind);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      out.bytes(4, value).varint(20, kStringKind);
    } else {
      for (const std::int64_t item : value) out.varint(8, static_cast<std::uint64_t>(item));
      out.varint(20, kIntsKind);
    }
  };
  std::visit(put, attribute.value);
  return out;
}

ProtoWriter tensor_of(const std::string& name, const std::vector<std::int64_t>& shape,
                      std::span<const float> values) {
  ProtoWriter out;
  for (const std::int64_t side : shape) out.varint(1, static_cast<std::uint64_t>(side));
  out.varint(2, kFloat).bytes(8, name);
  out.bytes(9, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  return out;
}

// A batch of any number of rows.
ProtoWriter value_of(const std::string& name, const std::vector<std::int64_t>& row) {
  ProtoWriter shape;
  shape.message(1, ProtoWriter().bytes(2, "batch"));
  for (const std::int64_t side : row)
    shape.message(1, ProtoWriter().varint(1, static_cast<std::uint64_t>(side)));
  const ProtoWriter tensor = ProtoWriter().varint(1, kFloat).message(2, shape);
  return ProtoWriter().bytes(1, name).message(2, ProtoWriter().message(1, tensor));
}

class OnnxGraph {
 public:
  OnnxGraph(const SavedModel& model, Engine& engine) : model_(model), graph_(model.graph), engine_(engine) {}

  Result<std::string> file() {
    const std::size_t scores = graph_.nodes.back().inputs[0].get();
    find_needed(scores);
    for (std::size_t node = 1; node <= scores; ++node)
      if (needed_.contains(node)) TRY(add_node(node, node == scores ? "scores" : value_name(node)));
    out_.bytes(2, model_.manifest.identity.model);
    TRY(add_tensors());
    const InputShape& in = model_.manifest.identity.shape;
    out_.message(11, value_of(value_name(0), {in.channels, in.height, in.width}));
    out_.message(12, value_of("scores", {graph_.nodes[scores].shape.channels}));
    ProtoWriter model;
    model.varint(1, kIrVersion).bytes(2, "dlrun-train").bytes(3, kVersion).message(7, out_);
    model.message(8, ProtoWriter().bytes(1, "").varint(2, static_cast<std::uint64_t>(opset_)));
    add_properties(model);
    return model.text();
  }

 private:
  static std::string value_name(std::size_t node) { return node == 0 ? "image" : fmt::format("v{}", node); }

  void find_needed(std::size_t node) {
    if (!needed_.insert(node).second) return;
    for (const Value input : graph_.nodes[node].inputs) find_needed(input.get());
  }

  Result<void> add_node(std::size_t index, const std::string& output) {
    const Node& node = graph_.nodes[index];
    const OperatorTraits& traits = traits_of(node.operation);
    if (node.shape.axes == Axes::volume)
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("{}: models of volumes are not written as ONNX", graph_.model),
                        .hint = kOtherFile});
    if (traits.onnx == nullptr)
      return fail(
          Error{.kind = ErrorKind::input,
                .what = fmt::format("{}: the operator '{}' has no form in ONNX", graph_.model, traits.name),
                .hint = kOtherFile});
    const OnnxForm form = traits.onnx(node.operation);
    opset_ = std::max(opset_, form.opset);
    ProtoWriter out;
    for (const Value input : node.inputs)
      out.bytes(1, form.takes_matrix ? flattened(input.get()) : value_name(input.get()));
    for (const ParameterRule& rule : parameters_of(graph_, node)) out.bytes(1, tensor_name(node, rule.part));
    for (const StatisticRule& rule : statistics_of(graph_, node)) out.bytes(1, tensor_name(node, rule.part));
    out.bytes(2, output).bytes(3, fmt::format("{}{}", traits.name, index)).bytes(4, form.type);
    for (const OnnxAttribute& attribute : form.attributes) out.message(5, attribute_of(attribute));
    out_.message(1, out);
    return {};
  }

  std::string tensor_name(const Node& node, std::string_view part) {
    std::string out = node.name + std::string(part);
    tensors_.insert(out);
    return out;
  }

  // A node more, which does nothing to what is a matrix already.
  std::string flattened(std::size_t value) {
    std::string out = value_name(value) + "_flat";
    out_.message(1, ProtoWriter().bytes(1, value_name(value)).bytes(2, out).bytes(4, "Flatten"));
    return out;
  }

  Result<void> add_tensors() {
    for (std::size_t i = 0; i < engine_.tensors().size(); ++i) {
      const TensorInfo& tensor = engine_.tensors()[i];
      if (!tensors_.contains(tensor.name)) continue;
      std::vector<float> values(tensor.elements());
      TRY(engine_.read_tensor(i, values));
      out_.message(5, tensor_of(tensor.name, tensor.shape, values));
    }
    return {};
  }

  void add_properties(ProtoWriter& model) const {
    const auto add = [&](std::string_view key, const std::string& value) {
      model.message(14, ProtoWriter().bytes(1, key).bytes(2, value));
    };
    for (const char* key : {"data.mean", "data.std"})
      if (const auto found = model_.manifest.settings.find(key); found != model_.manifest.settings.end())
        add(key, found->second);
    if (!model_.manifest.classes.empty()) add("classes", join(model_.manifest.classes, "\n"));
  }

  const SavedModel& model_;
  const Graph& graph_;
  Engine& engine_;
  ProtoWriter out_;
  std::set<std::size_t> needed_;
  std::set<std::string> tensors_;
  int opset_ = 13;
};

}  // namespace

Result<std::string> onnx_of(const SavedModel& model) {
  if (model.is_gan())
    return fail(Error{
        .kind = ErrorKind::input,
        .what = fmt::format("{} is a GAN, and ONNX files are of models with classes", model.graph.model),
        .hint = kOtherFile});
  const std::unique_ptr<Engine> engine = TRY(model.make_engine(1));
  return OnnxGraph(model, *engine).file();
}

}  // namespace dlrun::runtime
