// See data_format.hpp.
#include "runtime/data/data_format.hpp"

#include <algorithm>
#include <array>

#include "runtime/base/counted.hpp"
#include "runtime/data/short_list.hpp"
#include "runtime/data/split.hpp"

namespace dlrun::runtime {

// Each in the file of its format.
DataFormat::Read read_idx_section, read_cifar10_section, read_images_section, read_list_section,
    read_webdataset_section, read_tfrecord_section, read_lmdb_section, read_tokens_section,
    read_numpy_section, read_hdf5_section, read_synthetic_section;

namespace {

constexpr std::array kFormats = {
    DataFormat{"idx", read_idx_section},
    DataFormat{"cifar10", read_cifar10_section},
    DataFormat{"images", read_images_section},          // a folder per class
    DataFormat{"list", read_list_section},              // files with a path and a class number per line
    DataFormat{"webdataset", read_webdataset_section},  // tar files
    DataFormat{"tfrecord", read_tfrecord_section},
    DataFormat{"lmdb", read_lmdb_section},      // of Caffe's Datum
    DataFormat{"tokens", read_tokens_section},  // files of numbers, for language models
    DataFormat{"numpy", read_numpy_section},
    DataFormat{"hdf5", read_hdf5_section},
    DataFormat{"synthetic", read_synthetic_section},
};

// Folders without images are refused; this is what lists and packed data lack, and what damage has taken.
std::vector<std::string> classes_without_samples(const Dataset& data) {
  std::vector<char> seen(static_cast<std::size_t>(data.shape.classes));
  for (const std::uint16_t label : data.labels) seen[label] = 1;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i] == 0) out.push_back(std::to_string(i));
  return out;
}

// Of sequences; validation files beside a validation split are a test set.
std::string sequences_found(const DataParts& data, double train_share, const std::string& place) {
  const InputShape& shape = data.train.shape;
  const std::string of = fmt::format("sequences of {} in {}, out of a vocabulary of {}",
                                     counted(shape.height, "token"), place, shape.classes);
  if (train_share == 1)
    return fmt::format("found {} training and {} validation {}", data.train.count, data.test.count, of);
  const Split split(data.train.count, train_share, 0);
  return fmt::format("found {} training, {} validation (of the training files, by train: {}) and {} test {}",
                     split.training(), split.validation(), train_share, data.test.count, of);
}

}  // namespace

Result<Dataset> DataSource::load_evaluated() const {
  DataParts parts = TRY(load(0));
  return parts.test.count > 0 ? std::move(parts.test) : std::move(parts.train);
}

std::span<const DataFormat> data_formats() {
  return kFormats;
}

Result<DataSpec> read_data_source(yaml::Fields& data) {
  std::vector<std::string> names;
  for (const DataFormat& format : kFormats) names.emplace_back(format.name);
  const yaml::Node* const node = TRY(data.require("format"));
  const DataFormat& format = kFormats[TRY(yaml::as_choice(*node, data.path("format"), names))];
  DataSpec out;
  out.train_share = TRY(data.number_or("train", 1, 1e-6, 1));
  out.source = TRY(format.read(data, out.train_share));
  return out;
}

// size: 224, or [height, width]
Result<ImageSize> read_image_size(yaml::Fields& data) {
  ImageSize out;
  const yaml::Node* size = data.find("size");
  if (size == nullptr) return out;
  const bool two = size->kind == yaml::Kind::list && size->items.size() == 2;
  if (size->kind == yaml::Kind::list && !two)
    return yaml::error_at(*size, "train.data.size must be a number, or [height, width]");
  out.height = TRY(yaml::as_integer(two ? size->items[0] : *size, "train.data.size", 1, 1 << 13));
  out.width = TRY(yaml::as_integer(two ? size->items[1] : *size, "train.data.size", 1, 1 << 13));
  return out;
}

Result<Damaged> read_damaged(yaml::Fields& data) {
  static const std::vector<std::string> choices = {"refuse", "drop"};
  return TRY(data.choice_or("damaged", 0, choices)) == 0 ? Damaged::refused : Damaged::dropped;
}

Result<DataParts> load_data(const DataSource& source, std::uint64_t seed, double train_share) {
  DataParts out = TRY(source.load(seed));
  if (source.place().empty()) return out;
  const std::int64_t classes = out.train.shape.classes;
  if (source.kind() == SampleKind::tokens) {
    out.notes.insert(out.notes.begin(), sequences_found(out, train_share, source.place()));
    return out;
  }
  if (source.has_targets()) {
    out.notes.insert(out.notes.begin(),
                     fmt::format("found {} training and {} test samples with {} each in {}", out.train.count,
                                 out.test.count, counted(out.train.shape.targets, "target"), source.place()));
    return out;
  }
  const char* const things = source.holds_numbers() ? "samples" : "images";
  out.notes.insert(out.notes.begin(),
                   fmt::format("found {} classes, {} training and {} test {} in {}", classes, out.train.count,
                               out.test.count, things, source.place()));
  if (const auto absent = classes_without_samples(out.train); !absent.empty())
    out.notes.push_back(fmt::format("{} of {} classes have no training {}: number {}", absent.size(), classes,
                                    source.holds_numbers() ? "sample" : "image", short_list(absent)));
  return out;
}

}  // namespace dlrun::runtime
