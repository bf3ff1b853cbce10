// safetensors: eight bytes of header length, a JSON header, then raw little-endian values; readable by
// everybody's tools. Here a file is one contiguous image in memory. Only f32 is written; a checkpoint's is
// all that is accepted, while other people's files may have other types. A header is believed only where
// every offset fits the file. A part of a tensor is stored as "NAME[0:512,0:768]", its ranges on the axes,
// and the file's metadata has the shape of the whole under that name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/tensor_box.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

/// Where a part of a tensor belongs.
struct PartOf {
  std::string tensor;
  TensorShape whole;
  TensorBox box;
  friend bool operator==(const PartOf&, const PartOf&) = default;
};

struct StoredTensor {
  enum class Type { f32, f16, bf16, other };  // other: is there and cannot be read
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, bytes = 0;  // within the file
  Type type = Type::f32;
  std::optional<PartOf> part = {};  // set: it is a part, and `shape` is the part's
  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

struct SafetensorsLayout {
  std::string head;                   // the length and the header, padded: the file's first bytes
  std::vector<StoredTensor> tensors;  // in the order given
  std::size_t file_bytes = 0;
};

/// A box of a tensor as a file is to have it: the tensor itself where the box is all of it.
StoredTensor stored_box(const std::string& tensor, const TensorShape& whole, const TensorBox& box);

/// Lays out a file for tensors of these names and shapes (begin and bytes are filled in).
SafetensorsLayout plan_safetensors(std::vector<StoredTensor> tensors);

/// The tensors of a file image, in file order. `name` is what the Error calls it.
enum class StoredTypes { f32, any };
Result<std::vector<StoredTensor>> parse_safetensors(std::span<const std::byte> file, const std::string& name,
                                                    StoredTypes types = StoredTypes::f32);

/// The numbers of a tensor as f32, in `out`, which has as many. An Error for a type of numbers that is
/// `other`.
Result<void> read_stored(std::span<const std::byte> file, const StoredTensor& tensor, std::span<float> out);

}  // namespace dlrun::runtime
