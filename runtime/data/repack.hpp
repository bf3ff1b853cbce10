// Repacking: all samples of a source into shards of another container, as they are encoded. Workers write a
// shard each; what they wrote is noted beside it, so that a run that was ended goes on where it was. The
// folder gets its name when it is complete.
#pragma once

#include <functional>
#include <memory>

#include "runtime/data/data_format.hpp"

namespace dlrun::runtime {

/// A sample on its way: the bytes of a JPEG or PNG file.
struct PackedSample {
  std::string_view key;  // unique, as long for every sample
  std::span<const std::uint8_t> image;
  std::uint16_t label = 0;
};

/// The content of one shard while it is made.
class ShardContent {
 public:
  virtual ~ShardContent() = default;
  /// Where in the file the image is, of containers that are read by places.
  virtual std::uint64_t add(const PackedSample& sample) = 0;
  virtual std::string finish() = 0;
};

/// How one container is written.
struct ShardWriter {
  std::string_view name;  // in --as
  std::string (*file)(std::string_view part, std::size_t shard, std::size_t shards);
  std::unique_ptr<ShardContent> (*begin)();
  bool shuffled;  // samples are in a random order, for readers that see one after another
};
std::span<const ShardWriter> shard_writers();

struct RepackJob {
  std::shared_ptr<const DataSource> source;
  const ShardWriter* writer = nullptr;
  std::filesystem::path into;  // must not be there
  std::uint64_t shard_bytes = std::uint64_t{128} << 20;
  unsigned workers = 1;
  std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};
};
struct Repacked {
  std::uint64_t train = 0, test = 0, shards = 0, kept = 0;  // kept: shards of an earlier run
  std::vector<std::string> dropped;
};
/// Damaged images are refused or dropped as the source says; every image is decoded once to know.
Result<Repacked> repack(const RepackJob& job);

}  // namespace dlrun::runtime
