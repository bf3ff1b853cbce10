// See weight_file.hpp.
#include "runtime/train/weight_file.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

using Dims = std::vector<std::int64_t>;

std::string shape_text(const Dims& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// From [columns][rows] to [rows][columns].
std::vector<float> turned(const std::vector<float>& from, std::int64_t rows, std::int64_t columns) {
  std::vector<float> out(from.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) out[i * columns + j] = from[j * rows + i];
  return out;
}

// The shape of ours that the tensors of a file have together.
Dims shape_here(const std::vector<const StoredTensor*>& parts, WeightSource::Order order) {
  Dims out = parts.front()->shape;
  for (std::size_t i = 1; i < parts.size() && !out.empty(); ++i) {
    const Dims& more = parts[i]->shape;
    if (more.size() != out.size() || !std::equal(more.begin() + 1, more.end(), out.begin() + 1)) return {};
    out[0] += more[0];
  }
  if (order == WeightSource::Order::turned) std::reverse(out.begin(), out.end());
  return out;
}

std::string shapes_text(const std::vector<const StoredTensor*>& parts) {
  std::vector<std::string> all;
  for (const StoredTensor* part : parts) all.push_back(shape_text(part->shape));
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

Result<WeightFile> WeightFile::open(const std::filesystem::path& path) {
  WeightFile out(TRY(MappedFile::open(path)));
  for (StoredTensor& tensor : TRY(parse_safetensors(out.file_.bytes(), out.name(), StoredTypes::any))) {
    if (tensor.part)
      return bad_input(
          out.name(),
          fmt::format("has a part of tensor '{}': it is one of several files of a "
                      "checkpoint",
                      tensor.part->tensor),
          "make one file of the checkpoint: dlrun-train --export FILE.safetensors --checkpoint FOLDER");
    out.stored_.emplace(tensor.name, std::move(tensor));
  }
  out.naming_ = naming_of_file([&out](const std::string& name) { return out.stored_.contains(name); });
  return out;
}

std::string WeightFile::obstacle(const TensorInfo& tensor) const {
  const WeightSource source = source_in(naming_, tensor.name);
  const bool same_name = source.names == std::vector{tensor.name};
  const std::string who = same_name ? "" : fmt::format(" ({} there)", fmt::join(source.names, ", "));
  std::vector<const StoredTensor*> parts;
  for (const std::string& name : source.names) {
    const auto found = stored_.find(name);
    if (found == stored_.end()) return fmt::format("{}{} is not in the file", tensor.name, who);
    if (found->second.type == StoredTensor::Type::other)
      return fmt::format("{}{} has a type that is not F32, F16 or BF16", tensor.name, who);
    parts.push_back(&found->second);
  }
  if (shape_here(parts, source.order) == tensor.shape) return {};
  Dims wanted = tensor.shape;
  if (source.order == WeightSource::Order::turned) std::reverse(wanted.begin(), wanted.end());
  return fmt::format("{}{} is {} in the file, {} in the model", tensor.name, who, shapes_text(parts),
                     shape_text(wanted));
}

Result<std::vector<float>> WeightFile::read(const TensorInfo& tensor) {
  const WeightSource source = source_in(naming_, tensor.name);
  std::vector<float> out(elements_of(tensor.shape));
  std::size_t at = 0;
  for (const std::string& name : source.names) {
    const StoredTensor& part = stored_.at(name);
    const auto count =
        std::accumulate(part.shape.begin(), part.shape.end(), std::int64_t{1}, std::multiplies<>());
    TRY(read_stored(file_.bytes(), part, std::span(out).subspan(at, static_cast<std::size_t>(count))));
    at += static_cast<std::size_t>(count);
    taken_.insert(name);
  }
  if (source.order == WeightSource::Order::as_here) return out;
  return turned(out, tensor.shape[0], tensor.shape[1]);
}

std::vector<std::string> WeightFile::left() const {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : stored_)
    if (!taken_.contains(name) && !is_bystander(name)) out.push_back(name);
  return out;
}

namespace {

// How many rows of a linear layer are queries, keys and values: told by the attention that reads it.
Result<std::vector<std::int64_t>> rows_apart(const Graph& graph, const std::string& layer) {
  for (const runtime::Node& node : graph.nodes) {
    const auto* attention = std::get_if<op::Attention>(&node.operation);
    if (attention == nullptr) continue;
    const runtime::Node& from = graph.nodes[node.inputs[0].get()];
    if (layer.starts_with(from.name + ".")) {
      const std::int64_t width = attention->width(from.shape.features());
      return std::vector{attention->heads * width, attention->keys() * width, attention->keys() * width};
    }
  }
  return fail(ErrorKind::internal, "no attention reads {}", layer);
}

// What one of our tensors is in the file.
struct OutPart {
  StoredTensor tensor;
  std::size_t which;         // of the engine
  std::size_t first, count;  // of its numbers
  WeightSource::Order order;
};

Result<std::vector<OutPart>> parts_of(const TensorInfo& info, std::size_t which, const WeightNaming& naming,
                                      const Graph& graph) {
  const WeightSource source = source_in(naming, info.name);
  std::vector<std::int64_t> rows{info.shape.front()};
  if (source.names.size() > 1) rows = TRY(rows_apart(graph, info.name));
  const std::size_t row = info.elements() / static_cast<std::size_t>(info.shape.front());
  std::vector<OutPart> out;
  std::size_t first = 0;
  for (std::size_t part = 0; part < source.names.size(); ++part) {
    Dims shape = info.shape;
    shape.front() = rows[part];
    if (source.order == WeightSource::Order::turned) std::reverse(shape.begin(), shape.end());
    const std::size_t count = static_cast<std::size_t>(rows[part]) * row;
    out.push_back({{.name = source.names[part], .shape = shape}, which, first, count, source.order});
    first += count;
  }
  return out;
}

}  // namespace

Result<std::string> weight_file_of(const Engine& engine, const Graph& graph) {
  const std::vector<TensorInfo>& all = engine.tensors();
  const WeightNaming naming = naming_of_model([&all](const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const TensorInfo& info) { return info.name == name; });
  });
  std::vector<OutPart> parts;
  std::vector<StoredTensor> tensors;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].role == TensorInfo::Role::momentum) continue;
    for (OutPart& part : TRY(parts_of(all[i], i, naming, graph))) {
      tensors.push_back(part.tensor);
      parts.push_back(std::move(part));
    }
  }
  std::string out = plan_safetensors(std::move(tensors)).head;
  for (const OutPart& part : parts) {
    std::vector<float> values(all[part.which].elements());
    TRY(engine.read_tensor(part.which, values));
    if (part.order == WeightSource::Order::turned)
      values = turned(values, part.tensor.shape[0], part.tensor.shape[1]);
    out.append(reinterpret_cast<const char*>(values.data() + part.first), part.count * sizeof(float));
  }
  return out;
}

}  // namespace dlrun::runtime
