// Dataset: all samples of one part (training, test): images with one label each, the pixels in memory,
// mapped, or still encoded in files; arrays of numbers; or windows of a stream of tokens. What reads it from
// files is a DataSource (data_format.hpp). Loading finds every fault of a file, so that none interrupts a
// training; of encoded samples, those that show without decoding.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/base/input_shape.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/data/encoded/encoded_samples.hpp"
#include "runtime/data/numbers/number_samples.hpp"
#include "runtime/data/tokens/token_stream.hpp"

namespace dlrun::runtime {

enum class Damaged { refused, dropped };  // what becomes of images that cannot be decoded

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
  // Or in place of all: the tokens that sample i is a window of, from i * shape.height on. It has no label.
  std::shared_ptr<const TokenStream> tokens = nullptr;
  // Or in place of both: where the samples are, compressed. They have no pixels until they are decoded.
  std::shared_ptr<const EncodedSamples> encoded;
  // Or samples that are arrays of numbers, read where they lie when they are asked for.
  std::shared_ptr<const NumberSamples> numbers = nullptr;
  Damaged damaged = Damaged::refused;  // of encoded ones and of numbers
  std::vector<std::uint16_t> labels;
  std::vector<float> targets = {};  // in place of labels, shape.targets of each sample

  std::size_t pixels_per_sample() const { return static_cast<std::size_t>(shape.numbers()); }
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
  std::vector<std::string> notes = {};    // what was found, for people
  std::vector<std::string> classes = {};  // their names; empty where they have numbers alone
  std::string tokenizer = {};             // of tokens, the text of its file; empty where it is not known
};

}  // namespace dlrun::runtime
