// Dataset: all samples of one part (training, test) in memory, the pixels as the bytes of the file and one
// label each. Everything a file can get wrong is found while loading, so that training never meets it.
#pragma once

#include <array>
#include <filesystem>
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
  // An Error, with the file, where a sample is not what was packed.
  Result<void> check_sample(std::uint64_t sample) const;
  // A number that differs where the samples do: compared between ranks and with a checkpoint's.
  std::uint64_t fingerprint() const;
};

struct DataParts {
  Dataset train, test;
  std::vector<std::string> notes = {};  // what was found, for people
};

// images: a folder a class. list: files with a path and a class number a line.
enum class DataFormat { idx, cifar10, images, list, synthetic };
enum class Damaged { refused, dropped };

// The `data:` section of a job's `train:`.
struct DataSpec {
  DataFormat format = DataFormat::synthetic;
  std::filesystem::path directory = {};
  std::int64_t classes = 10;
  std::int64_t height = 224, width = 224;           // of images and list: what each image is brought to
  std::filesystem::path list = {}, test_list = {};  // of list
  Damaged damaged = Damaged::refused;               // images that cannot be decoded
  InputShape synthetic_shape = {};
  std::uint64_t synthetic_samples = 4096;
  double train_share = 1;  // of the training part; the rest is held out
  std::uint64_t seed = 1;  // of synthetic data
};

// What the samples will look like. Opens every file and checks headers and lengths, which is cheap, so that a
// model can be built while the rest is read.
Result<InputShape> probe_data(const DataSpec& spec);
// The same with everything checked that takes milliseconds.
Result<InputShape> check_data(const DataSpec& spec);
// Both parts, checked from the first byte to the last.
Result<DataParts> load_data(const DataSpec& spec);

}  // namespace dlrun::runtime
