// See data_format.hpp.
#include "runtime/data/data_format.hpp"

#include <algorithm>
#include <array>

#include "runtime/data/short_list.hpp"

namespace dlrun::runtime {

// Each in the file of its format.
DataFormat::Read read_idx_section, read_cifar10_section, read_images_section, read_list_section,
    read_synthetic_section;

namespace {

constexpr std::array kFormats = {
    DataFormat{"idx", read_idx_section},
    DataFormat{"cifar10", read_cifar10_section},
    DataFormat{"images", read_images_section},  // a folder per class
    DataFormat{"list", read_list_section},      // files with a path and a class number per line
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

}  // namespace

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

Result<DataParts> load_data(const DataSource& source, std::uint64_t seed) {
  DataParts out = TRY(source.load(seed));
  if (source.place().empty()) return out;
  const std::int64_t classes = out.train.shape.classes;
  out.notes.insert(out.notes.begin(), fmt::format("found {} classes, {} training and {} test images in {}",
                                                  classes, out.train.count, out.test.count, source.place()));
  if (const auto absent = classes_without_samples(out.train); !absent.empty())
    out.notes.push_back(fmt::format("{} of {} classes have no training image: number {}", absent.size(),
                                    classes, short_list(absent)));
  return out;
}

}  // namespace dlrun::runtime
