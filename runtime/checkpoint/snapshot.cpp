// See snapshot.hpp.
#include "runtime/checkpoint/snapshot.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "runtime/base/checksum.hpp"

namespace dlrun::runtime {
namespace {

// The file (0 or 1) that a tensor goes into.
std::size_t file_of(const TensorInfo& tensor) {
  return tensor.role == TensorInfo::Role::momentum ? 1 : 0;
}

std::span<float> floats(std::byte* image, const StoredTensor& tensor) {
  return {reinterpret_cast<float*>(image + tensor.begin), tensor.bytes / sizeof(float)};
}

}  // namespace

std::array<std::string, 2> state_files_of(const CheckpointPart& part) {
  if (part.parts == 0) return {std::string(state_file_names[0]), std::string(state_file_names[1])};
  const auto name = [&](std::string_view what) {
    return fmt::format("{}-{:05}-of-{:05}.safetensors", what, part.part + 1, part.parts);
  };
  return {name("model"), name("optimizer")};
}

bool is_divided(const Engine& engine) {
  return std::any_of(engine.tensors().begin(), engine.tensors().end(),
                     [](const TensorInfo& tensor) { return tensor.held.has_value(); });
}

std::vector<SnapshotPiece> all_pieces(const Engine& engine) {
  std::vector<SnapshotPiece> out;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i)
    for (TensorBox& box : engine.tensors()[i].boxes()) out.push_back({i, std::move(box)});
  return out;
}

namespace {

// Running statistics are of a rank's own samples, so the whole tensor is the first rank's.
bool is_of_first(const TensorInfo& tensor) {
  return tensor.role == TensorInfo::Role::statistic;
}

// Boxes that several ranks have are laid end to end and cut into equal parts; a row belongs to the part in
// which it begins.
class SharedRows {
 public:
  SharedRows(std::size_t all, int part, int parts)
      : begin_(all * static_cast<std::size_t>(part) / static_cast<std::size_t>(parts)),
        end_(all * (static_cast<std::size_t>(part) + 1) / static_cast<std::size_t>(parts)) {}

  /// The next box: what of it is in this part.
  std::optional<TensorBox> part_of(const TensorBox& box) {
    const std::size_t rows = box.count.empty() ? 1 : static_cast<std::size_t>(box.count.front());
    const std::size_t row = rows == 0 ? 1 : box.elements() / rows;
    const auto row_from = [&](std::size_t border) {
      return border <= at_ ? std::size_t{0} : std::min(rows, (border - at_ + row - 1) / row);
    };
    const std::size_t first = row_from(begin_), count = row_from(end_) - first;
    at_ += box.elements();
    if (count == 0) return std::nullopt;
    if (count == rows) return box;
    TensorBox out = box;
    out.first[0] += static_cast<std::int64_t>(first);
    out.count[0] = static_cast<std::int64_t>(count);
    return out;
  }

 private:
  std::size_t begin_, end_, at_ = 0;
};

std::size_t elements_of(const Engine& engine, bool (*counts)(const TensorInfo&)) {
  std::size_t out = 0;
  for (const TensorInfo& tensor : engine.tensors())
    if (counts(tensor)) out += tensor.elements();
  return out;
}

bool is_elsewhere(const TensorInfo& tensor) {
  return tensor.held_by == TensorInfo::HeldBy::earlier_stage;
}

bool is_on_all(const TensorInfo& tensor) {
  return !tensor.held && !is_of_first(tensor) && !is_elsewhere(tensor);
}

bool is_on_data_group(const TensorInfo& tensor) {
  return tensor.held && tensor.held_by == TensorInfo::HeldBy::data_group;
}

}  // namespace

std::vector<SnapshotPiece> pieces_of(const Engine& engine, const CheckpointPart& part) {
  SharedRows on_all(elements_of(engine, is_on_all), part.stage_part(), part.stage_parts());
  SharedRows on_data_group(elements_of(engine, is_on_data_group), part.data_rank(), part.data_ranks());
  const auto own_part = [&](const TensorInfo& tensor, const TensorBox& box) -> std::optional<TensorBox> {
    if (is_elsewhere(tensor)) return std::nullopt;
    if (is_of_first(tensor)) return part.stage_part() == 0 ? std::optional(box) : std::nullopt;
    if (is_on_all(tensor)) return on_all.part_of(box);
    if (is_on_data_group(tensor)) return on_data_group.part_of(box);
    const bool is_anothers = tensor.held_by == TensorInfo::HeldBy::tensor_group && part.tensor_rank() != 0;
    return is_anothers ? std::nullopt : std::optional(box);
  };
  std::vector<SnapshotPiece> out;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i)
    for (const TensorBox& box : engine.tensors()[i].boxes())
      if (const auto own = own_part(engine.tensors()[i], box)) out.push_back({i, *own});
  return out;
}

Result<Snapshot> Snapshot::make(const Engine& engine, std::vector<SnapshotPiece> pieces) {
  Snapshot out;
  std::erase_if(pieces, [](const SnapshotPiece& piece) { return piece.box.elements() == 0; });
  out.pieces_ = std::move(pieces);
  for (std::size_t file = 0; file < 2; ++file) {
    std::vector<StoredTensor> tensors;
    for (const SnapshotPiece& piece : out.pieces_) {
      const TensorInfo& tensor = engine.tensors()[piece.tensor];
      if (file_of(tensor) == file) tensors.push_back(stored_box(tensor.name, tensor.shape, piece.box));
    }
    out.layouts_[file] = plan_safetensors(std::move(tensors));
    const SafetensorsLayout& layout = out.layouts_[file];
    out.images_[file] = TRY(HugeBuffer::make(layout.file_bytes));
    std::memcpy(out.images_[file].data(), layout.head.data(), layout.head.size());
  }
  return out;
}

namespace {

// Out of the numbers of all boxes that the engine has of a tensor.
void copy_piece(const TensorInfo& tensor, const TensorBox& piece, const float* numbers, float* to) {
  for (const TensorBox& box : tensor.boxes()) {
    if (const auto part = common_part(box, piece)) copy_part(*part, box, numbers, piece, to);
    numbers += box.elements();
  }
}

}  // namespace

Result<void> Snapshot::take(const Engine& engine) {
  std::array<std::size_t, 2> next{};
  std::optional<std::size_t> there;  // the tensor in numbers_
  for (const SnapshotPiece& piece : pieces_) {
    const TensorInfo& tensor = engine.tensors()[piece.tensor];
    const std::size_t file = file_of(tensor);
    const std::span<float> place = floats(images_[file].data(), layouts_[file].tensors[next[file]++]);
    if (place.size() == tensor.elements()) {
      TRY(engine.read_tensor(piece.tensor, place));
      continue;
    }
    if (there != piece.tensor) {
      numbers_.resize(tensor.elements());
      TRY(engine.read_tensor(piece.tensor, numbers_));
      there = piece.tensor;
    }
    copy_piece(tensor, piece.box, numbers_.data(), place.data());
  }
  return {};
}

Result<std::array<HugeBuffer, 2>> whole_files(const Engine& engine, const TensorReader& from) {
  std::array<HugeBuffer, 2> out;
  for (std::size_t file = 0; file < 2; ++file) {
    std::vector<StoredTensor> tensors;
    for (const TensorInfo& tensor : engine.tensors())
      if (file_of(tensor) == file) tensors.push_back({.name = tensor.name, .shape = tensor.shape});
    const SafetensorsLayout layout = plan_safetensors(std::move(tensors));
    out[file] = TRY(HugeBuffer::make(layout.file_bytes));
    std::memcpy(out[file].data(), layout.head.data(), layout.head.size());
    for (const StoredTensor& tensor : layout.tensors)
      TRY(from.read(tensor.name, tensor.shape, whole_box(tensor.shape), floats(out[file].data(), tensor)));
  }
  return out;
}

Result<void> restore(Engine& engine, const TensorReader& from) {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    const TensorInfo& tensor = engine.tensors()[i];
    numbers.resize(tensor.elements());
    std::span<float> left(numbers);
    for (const TensorBox& box : tensor.boxes()) {
      TRY(from.read(tensor.name, tensor.shape, box, left.first(box.elements())));
      left = left.subspan(box.elements());
    }
    TRY(engine.write_tensor(i, numbers));
  }
  // A stage has some of them.
  if (engine.staged() != nullptr || from.tensors() == engine.tensors().size()) return {};
  return fail(ErrorKind::input, "the checkpoint has {} tensors, but the model has {}", from.tensors(),
              engine.tensors().size());
}

Result<void> restore(Engine& engine, const std::array<std::span<const std::byte>, 2>& files) {
  std::array<std::vector<StoredTensor>, 2> stored;
  for (std::size_t file = 0; file < 2; ++file)
    stored[file] = TRY(parse_safetensors(files[file], std::string(state_file_names[file])));
  std::array<std::size_t, 2> used{};
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    const TensorInfo& tensor = engine.tensors()[i];
    const std::size_t file = file_of(tensor);
    const auto found = std::find_if(stored[file].begin(), stored[file].end(),
                                    [&](const StoredTensor& s) { return s.name == tensor.name; });
    if (found == stored[file].end() || found->shape != tensor.shape)
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("tensor '{}' is {}", tensor.name,
                                            found == stored[file].end() ? "missing" : "of another shape"),
                        .where = std::string(state_file_names[file])});
    std::byte* image = const_cast<std::byte*>(files[file].data());
    TRY(engine.write_tensor(i, floats(image, *found)));
    ++used[file];
  }
  for (std::size_t file = 0; file < 2; ++file)
    if (used[file] != stored[file].size())
      return fail(ErrorKind::input, "{} has {} tensors, but the model has {}", state_file_names[file],
                  stored[file].size(), used[file]);
  return {};
}

// The state has as many tensors in each slot as there are parameters.
std::vector<std::string> tensor_texts(const Engine& engine) {
  using Role = TensorInfo::Role;
  std::vector<std::string> out(2);
  std::size_t parameters = 0, states = 0;
  for (const TensorInfo& tensor : engine.tensors()) {
    std::size_t at = tensor.role == Role::statistic ? 1 : 0;
    if (tensor.role == Role::parameter) ++parameters;
    if (tensor.role == Role::momentum) at = 2 + states++ / std::max<std::size_t>(parameters, 1);
    if (at >= out.size()) out.resize(at + 1);
    if (!is_elsewhere(tensor))
      out[at] +=
          fmt::format("{}:{}:{};", tensor.name, static_cast<int>(tensor.role), fmt::join(tensor.shape, "x"));
  }
  return out;
}

std::uint64_t tensors_checksum(const std::vector<std::string>& texts) {
  return checksum(fmt::format("{}", fmt::join(texts, "")));
}

std::uint64_t tensors_checksum(const Engine& engine) {
  return tensors_checksum(tensor_texts(engine));
}

}  // namespace dlrun::runtime
