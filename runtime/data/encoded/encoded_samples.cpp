// See encoded_samples.hpp.
#include "runtime/data/encoded/encoded_samples.hpp"

#include <algorithm>

#include "runtime/base/checksum.hpp"
#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {

std::string EncodedSamples::place(std::uint64_t sample) const {
  const Extent& at = extents[sample];
  if (at.length == Extent::kWholeFile) return files.path(at.file).string();
  return place_in_file(files.path(at.file), at.offset);
}

Result<EncodedSamples::Record> EncodedSamples::record(std::uint64_t sample,
                                                      std::vector<std::uint8_t>& room) const {
  const Extent& at = extents[sample];
  if (at.length == Extent::kWholeFile) {
    TRY(files.read_whole(at.file, room));
  } else {
    room.resize(at.length);
    TRY(files.read(at.file, at.offset, room));
  }
  if (!checksums.empty() && checksum(std::as_bytes(std::span(room))) != checksums[sample])
    return bad_input(place(sample), fmt::format("sample {} is damaged: its checksum differs", sample),
                     "prepare the data set again: dlrun-train --prepare");
  return Record(room);
}

Result<EncodedImage> EncodedSamples::read(std::uint64_t sample, std::vector<std::uint8_t>& room) const {
  const Record bytes = TRY(record(sample, room));
  if (!unwrap) return EncodedImage{.bytes = bytes, .raw = {}};
  auto image = unwrap(bytes);
  if (image) return image;
  Error error = std::move(image).error();
  error.where = place(sample);
  return fail(std::move(error));
}

std::uint64_t EncodedSamples::fingerprint() const {
  std::uint64_t hash = mix(0, extents.size());
  for (const Extent& at : extents)
    if (at.length != Extent::kWholeFile) hash = mix(hash, at.length);
  std::vector<std::uint8_t> room;
  for (std::uint64_t i = 0; i < extents.size(); i += std::max<std::uint64_t>(1, extents.size() / 16))
    if (const auto bytes = record(i, room)) hash = mix(hash, checksum(std::as_bytes(*bytes)));
  return hash;
}

}  // namespace dlrun::runtime
