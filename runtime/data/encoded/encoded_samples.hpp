// EncodedSamples: the samples of one part of a data set as they lie in files, compressed: where each is, its
// label, and how its image is taken out of the record around it. Nothing is decoded here, and nothing is
// kept in memory but the places. What a record is belongs to its container (tar, TFRecord, LMDB, shards).
#pragma once

#include <functional>
#include <optional>

#include "runtime/data/encoded/file_set.hpp"

namespace dlrun::runtime {

struct Extent {
  static constexpr std::uint32_t kWholeFile = UINT32_MAX;
  std::uint32_t file = 0;
  std::uint32_t length = kWholeFile;
  std::uint64_t offset = 0;
};

/// Pixels that a record has without compression: planes of bytes, in the order of its own channels.
struct RawShape {
  std::int64_t channels = 0, height = 0, width = 0;
};

/// What a record holds: the bytes of a JPEG or PNG file, or raw pixels. They lie in the record's memory.
struct EncodedImage {
  std::span<const std::uint8_t> bytes;
  std::optional<RawShape> raw;
};

class EncodedSamples {
 public:
  using Record = std::span<const std::uint8_t>;
  using Unwrap = std::function<Result<EncodedImage>(Record record)>;

  FileSet files;
  std::vector<Extent> extents;
  Unwrap unwrap;                         // empty: the record is the image
  std::vector<std::uint64_t> checksums;  // of the records; empty where the container has its own or none

  /// The bytes of a sample's record, checked; they lie in `room`.
  Result<Record> record(std::uint64_t sample, std::vector<std::uint8_t>& room) const;
  /// The image of a sample; it lies in `room`. An Error names file and offset.
  Result<EncodedImage> read(std::uint64_t sample, std::vector<std::uint8_t>& room) const;
  /// Where the sample is, for people.
  std::string place(std::uint64_t sample) const;
  /// A number that differs where the samples do, of a few of them and all lengths.
  std::uint64_t fingerprint() const;
};

}  // namespace dlrun::runtime
