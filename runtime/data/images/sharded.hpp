// Shards of encoded images: a folder that `dlrun-train --prepare --as shards` wrote. A shard is the bytes of
// JPEG and PNG files one after another; an index has the place, label and checksum of each, and a small
// file says what the folder is. It is written last, so that a folder that is not complete is none.
#pragma once

#include "runtime/data/images/image_set.hpp"

namespace dlrun::runtime {

bool is_sharded(const std::filesystem::path& folder);
Result<InputShape> probe_sharded(const ImageSpec& spec);
Result<DataParts> load_sharded(const ImageSpec& spec);

/// A sample's line of the index.
struct ShardEntry {
  std::uint32_t shard = 0, length = 0;
  std::uint64_t offset = 0, checksum = 0;
  std::uint16_t label = 0;
};
std::filesystem::path encoded_shard_path(const std::filesystem::path& folder, const std::string& part,
                                         std::size_t shard);
/// Writes the index of each part, and then what makes the folder complete.
Result<void> write_shard_index(const std::filesystem::path& folder, const std::vector<std::string>& classes,
                               const std::vector<ShardEntry>& train, const std::vector<ShardEntry>& test);

}  // namespace dlrun::runtime
