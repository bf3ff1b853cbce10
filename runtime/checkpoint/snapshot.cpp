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

std::vector<StoredTensor> tensors_of(const Engine& engine, std::size_t file) {
  std::vector<StoredTensor> out;
  for (const TensorInfo& tensor : engine.tensors())
    if (file_of(tensor) == file) out.push_back({.name = tensor.name, .shape = tensor.shape});
  return out;
}

std::span<float> floats(std::byte* image, const StoredTensor& tensor) {
  return {reinterpret_cast<float*>(image + tensor.begin), tensor.bytes / sizeof(float)};
}

}  // namespace

Result<Snapshot> Snapshot::make(const Engine& engine) {
  Snapshot out;
  for (std::size_t file = 0; file < 2; ++file) {
    out.layouts_[file] = plan_safetensors(tensors_of(engine, file));
    const SafetensorsLayout& layout = out.layouts_[file];
    out.images_[file] = TRY(HugeBuffer::make(layout.file_bytes));
    std::memcpy(out.images_[file].data(), layout.head.data(), layout.head.size());
  }
  return out;
}

Result<void> Snapshot::take(const Engine& engine) {
  std::array<std::size_t, 2> next{};
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    const std::size_t file = file_of(engine.tensors()[i]);
    const StoredTensor& place = layouts_[file].tensors[next[file]++];
    TRY(engine.read_tensor(i, floats(images_[file].data(), place)));
  }
  return {};
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

std::uint64_t tensors_checksum(const Engine& engine) {
  std::string text;
  for (const TensorInfo& tensor : engine.tensors())
    text +=
        fmt::format("{}:{}:{};", tensor.name, static_cast<int>(tensor.role), fmt::join(tensor.shape, "x"));
  return checksum(text);
}

}  // namespace dlrun::runtime
