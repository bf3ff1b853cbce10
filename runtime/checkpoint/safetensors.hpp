// safetensors: eight bytes of header length, a JSON header, then raw little-endian values; readable by
// everybody's tools. Here a file is one contiguous image in memory. Only f32 is written and accepted, and a
// header is believed only where every offset fits the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::runtime {

struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, bytes = 0;  // within the file
  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

struct SafetensorsLayout {
  std::string head;                   // the length and the header, padded: the file's first bytes
  std::vector<StoredTensor> tensors;  // in the order given
  std::size_t file_bytes = 0;
};

/// Lays out a file for tensors of these names and shapes (begin and bytes are filled in).
SafetensorsLayout plan_safetensors(std::vector<StoredTensor> tensors);

/// The tensors of a file image, in file order. `name` is what the Error calls it.
Result<std::vector<StoredTensor>> parse_safetensors(std::span<const std::byte> file, const std::string& name);

}  // namespace dlrun::runtime
