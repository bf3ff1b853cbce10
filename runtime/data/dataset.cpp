// See dataset.hpp. The one table from a format's name to its reader.
#include "runtime/data/dataset.hpp"

#include <algorithm>

#include "runtime/base/checksum.hpp"
#include "runtime/base/keyed_random.hpp"
#include "runtime/data/cifar10.hpp"
#include "runtime/data/idx.hpp"
#include "runtime/data/images/image_data.hpp"
#include "runtime/data/images/image_set.hpp"
#include "runtime/data/synthetic.hpp"

namespace dlrun::runtime {

namespace {

Result<DataParts> load_format(const DataSpec& spec) {
  switch (spec.format) {
    case DataFormat::idx:
      return load_idx(spec.directory, spec.classes);
    case DataFormat::cifar10:
      return load_cifar10(spec.directory);
    case DataFormat::images:
    case DataFormat::list:
      return load_images(spec);
    case DataFormat::synthetic:
      return make_synthetic(spec.synthetic_shape, spec.synthetic_samples, spec.seed);
  }
  return fail(ErrorKind::internal, "a data format without a reader");
}

std::string what_was_found(const DataSpec& spec, const DataParts& parts) {
  const std::filesystem::path& where = spec.format == DataFormat::list ? spec.list : spec.directory;
  return fmt::format("found {} classes, {} training and {} test images in {}", parts.train.shape.classes,
                     parts.train.count, parts.test.count, where.string());
}

// Folders without images are refused; this is what lists and packed data lack, and what damage has taken.
std::vector<std::string> classes_without_samples(const Dataset& data) {
  std::vector<char> seen(static_cast<std::size_t>(data.shape.classes));
  for (const std::uint16_t label : data.labels) seen[label] = 1;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i] == 0) out.push_back(std::to_string(i));
  return out;
}

}  // namespace

Result<void> Dataset::check_sample(std::uint64_t sample) const {
  if (checksums.empty() || checksum(std::as_bytes(pixels(sample))) == checksums[sample]) return {};
  return bad_input(
      shards[sample / shard_samples].name(),
      fmt::format("image {} is not as it was packed: its checksum differs", sample % shard_samples),
      "pack the images again: dlrun-train --prepare");
}

std::uint64_t Dataset::fingerprint() const {
  std::uint64_t hash = mix(count, pixels_per_sample());
  for (const std::uint16_t label : labels) hash = mix(hash, label);
  // A few rows of pixels: enough to tell another data set, and free.
  for (std::uint64_t i = 0; i < count; i += std::max<std::uint64_t>(1, count / 64))
    for (const std::uint8_t pixel : pixels(i)) hash = mix(hash, pixel);
  return hash;
}

Result<InputShape> probe_data(const DataSpec& spec) {
  switch (spec.format) {
    case DataFormat::idx:
      return probe_idx(spec.directory, spec.classes);
    case DataFormat::cifar10:
      return probe_cifar10(spec.directory);
    case DataFormat::images:
    case DataFormat::list:
      return probe_images(spec);
    case DataFormat::synthetic:
      return spec.synthetic_shape;
  }
  return fail(ErrorKind::internal, "a data format without a reader");
}

Result<InputShape> check_data(const DataSpec& spec) {
  return spec.format == DataFormat::idx ? check_idx(spec.directory, spec.classes) : probe_data(spec);
}

Result<DataParts> load_data(const DataSpec& spec) {
  DataParts out = TRY(load_format(spec));
  if (spec.format == DataFormat::synthetic) return out;
  out.notes.insert(out.notes.begin(), what_was_found(spec, out));
  if (const auto empty = classes_without_samples(out.train); !empty.empty())
    out.notes.push_back(fmt::format("{} of {} classes have no training image: number {}", empty.size(),
                                    out.train.shape.classes, some_of(empty)));
  return out;
}

}  // namespace dlrun::runtime
