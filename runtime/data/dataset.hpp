// Dataset: all samples of one part (training, test) in memory, the pixels as the bytes of the file and one
// label each. What reads it from files is a DataSource (data_format.hpp). Loading finds every
// fault of a file, so that none interrupts a training.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/base/input_shape.hpp"
#include "runtime/base/mapped_file.hpp"

namespace dlrun::runtime {

struct Dataset {
  InputShape shape;
  std::uint64_t count = 0;
  // Sample i's pixels (channel, row, column) start at bytes[first + i * stride].
  HugeBuffer bytes;
  std::size_t first = 0, stride = 0;
  // Or in place of `bytes`: files on disk, each with so many samples.
  std::vector<MappedFile> shards;
  std::uint64_t shard_samples = 0;
  // Of each sample's pixels in shards, as they were packed; empty where none were kept.
  std::vector<std::uint64_t> checksums;
  std::vector<std::uint16_t> labels;

  std::size_t pixels_per_sample() const {
    return static_cast<std::size_t>(shape.channels * shape.height * shape.width);
  }
  std::span<const std::uint8_t> pixels(std::uint64_t sample) const {
    const std::byte* start =
        shards.empty() ? bytes.data() + first + sample * stride
                       : shards[sample / shard_samples].bytes().data() + sample % shard_samples * stride;
    return {reinterpret_cast<const std::uint8_t*>(start), pixels_per_sample()};
  }
  /// An Error, with the file, where a sample is not what was packed.
  Result<void> check_sample(std::uint64_t sample) const;
  /// A number that differs where the samples do: compared between ranks and with a checkpoint's.
  std::uint64_t fingerprint() const;
};

struct DataParts {
  Dataset train, test;
  std::vector<std::string> notes = {};  // what was found, for people
};

}  // namespace dlrun::runtime
