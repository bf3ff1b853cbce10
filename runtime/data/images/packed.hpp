// Packed images: a folder of shards (samples one behind the other, as training reads them) and an index.
// Written once, read by mapping: no decoding, nothing kept twice in memory by the ranks of a node. The index
// is written last and the folder renamed into place, so that a half-packed one does not exist.
#pragma once

#include <functional>

#include "runtime/data/images/image_set.hpp"

namespace dlrun::runtime {

bool is_packed(const std::filesystem::path& folder);
Result<InputShape> probe_packed(const std::filesystem::path& folder);
Result<DataParts> load_packed(const std::filesystem::path& folder);

struct PackJob {
  ImageSpec data;              // which images, and what they are brought to
  std::filesystem::path into;  // must not be there
  std::uint64_t shard_bytes = std::uint64_t{1} << 30;
  std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};
};
struct Packed {
  std::uint64_t train = 0, test = 0, dropped = 0;
};
Result<Packed> pack_images(const PackJob& job);

}  // namespace dlrun::runtime
