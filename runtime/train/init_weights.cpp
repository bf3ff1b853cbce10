// See init_weights.hpp.
#include "runtime/train/init_weights.hpp"

#include <map>
#include <set>

#include <fmt/format.h>

#include "runtime/base/mapped_file.hpp"
#include "runtime/base/name_pattern.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/data/short_list.hpp"

namespace dlrun::runtime {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

using Stored = std::map<std::string, StoredTensor>;

// Why a tensor cannot be taken from the file; empty if it can.
std::string obstacle(const TensorInfo& tensor, const Stored& stored) {
  const auto found = stored.find(tensor.name);
  if (found == stored.end()) return tensor.name + " is not in the file";
  if (found->second.type == StoredTensor::Type::other)
    return tensor.name + " has a type that is not F32, F16 or BF16";
  if (found->second.shape == tensor.shape) return {};
  return fmt::format("{} is {} in the file, {} in the model", tensor.name, shape_text(found->second.shape),
                     shape_text(tensor.shape));
}

Result<void> check_all_there(const std::vector<std::string>& missing, const std::string& file) {
  if (missing.empty()) return {};
  constexpr std::size_t kShown = 10;
  Error error{.kind = ErrorKind::input,
              .what = fmt::format("{} tensor{} of the model cannot be taken from it", missing.size(),
                                  missing.size() == 1 ? "" : "s"),
              .where = file,
              .hint = "name those that are to start anew: init-from: {file: ..., skip: [fc.*]}",
              .also = missing};
  if (missing.size() > kShown) {
    error.also.resize(kShown);
    error.also.push_back(fmt::format("and {} more", missing.size() - kShown));
  }
  return fail(std::move(error));
}

// PyTorch counts the batches that batch norm has seen; nothing here asks for that.
bool is_counter(const std::string& name) {
  return name.ends_with("num_batches_tracked");
}

}  // namespace

Result<std::vector<std::string>> init_weights(Engine& engine, const InitWeights& from) {
  const MappedFile file = TRY(MappedFile::open(from.file));
  Stored stored;
  for (StoredTensor& tensor : TRY(parse_safetensors(file.bytes(), file.name(), StoredTypes::any)))
    stored.emplace(tensor.name, std::move(tensor));
  std::vector<std::string> missing, skipped, left;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    const TensorInfo& tensor = engine.tensors()[i];
    if (tensor.role == TensorInfo::Role::momentum) continue;
    if (matches_any(from.skip, tensor.name)) {
      skipped.push_back(tensor.name);
      continue;
    }
    if (std::string why = obstacle(tensor, stored); !why.empty()) {
      missing.push_back(std::move(why));
      continue;
    }
    std::vector<float> values(tensor.elements());
    TRY(read_stored(file.bytes(), stored.at(tensor.name), values));
    TRY(engine.write_tensor(i, values));
    taken.insert(tensor.name);
  }
  TRY(check_all_there(missing, file.name()));
  for (const auto& [name, tensor] : stored)
    if (!taken.contains(name) && !is_counter(name)) left.push_back(name);
  std::vector<std::string> lines{fmt::format("{} tensors start from {}", taken.size(), file.name())};
  if (!skipped.empty()) lines.push_back("they start anew: " + short_list(skipped));
  if (!left.empty()) lines.push_back("not used of the file: " + short_list(left));
  return lines;
}

Result<void> check_patterns(const Engine& engine, std::string_view key,
                            const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const auto& all = engine.tensors();
    const bool known = std::any_of(all.begin(), all.end(), [&](const TensorInfo& tensor) {
      return tensor.role == TensorInfo::Role::parameter && matches(pattern, tensor.name);
    });
    if (!known)
      return fail(Error{.kind = ErrorKind::usage,
                        .what = fmt::format("{}: no parameter is named '{}'", key, pattern),
                        .hint = "names are those in a checkpoint's model.safetensors, as layer1.*"});
  }
  return {};
}

}  // namespace dlrun::runtime
