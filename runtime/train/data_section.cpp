// See data_section.hpp.
#include "runtime/train/data_section.hpp"

#include <algorithm>

#include "runtime/data/augment_section.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using YamlNode = yaml::Node;

// As those of images of 8 bits, they are 0 to 1 for the model.
constexpr double kDeepScale = 1.0 / 65535;
constexpr double kMaxNumber = 1e30, kMinStd = 1e-30;

// A number per channel, or one for all. Where the files alone tell how many there are, any number of them.
Result<std::vector<double>> read_per_channel(Fields& data, std::string_view key, double low,
                                             std::size_t channels) {
  std::vector<double> out;
  const YamlNode* node = data.find(key);
  if (node == nullptr) return out;
  const std::string name = data.path(key);
  if (node->kind == yaml::Kind::list)
    for (const YamlNode& item : node->items) out.push_back(TRY(yaml::as_number(item, name, low, kMaxNumber)));
  else
    out.assign(std::max<std::size_t>(1, channels), TRY(yaml::as_number(*node, name, low, kMaxNumber)));
  if (out.size() != channels && channels != 0)
    return yaml::error_at(*node, fmt::format("{} has {} numbers for {} channel{}", name, out.size(), channels,
                                             channels == 1 ? "" : "s"));
  return out;
}

// Of samples that are numbers as they are: nothing of images applies.
Result<void> read_number_scaling(Fields& data, TrainSpec& out) {
  static const std::vector<std::string> transforms{"none", "log1p"};
  const double usual = out.data.source->bit_depth() == 16 ? kDeepScale : 1;
  out.conversion.scale = TRY(data.number_or("scale", usual, -kMaxNumber, kMaxNumber));
  out.conversion.transform =
      static_cast<NumberScaling::Transform>(TRY(data.choice_or("transform", 0, transforms)));
  out.decoding.memory = std::min(out.decoding.memory, TRY(data.size_or("memory", out.decoding.memory)));
  if (data.has("workers"))
    out.decoding.workers = static_cast<unsigned>(TRY(data.integer_or("workers", 1, 1, 1024)));
  return data.finish();
}

// What a GPU does on the way is cut out, scale and mirror; and images that are in memory are decoded once.
Result<void> check_decode_by_gpu(Fields& data, const TrainSpec& spec) {
  const Augmentation& of = spec.augmentation;
  const bool does_more = of.crop_padding > 0 || of.jitter.any();
  if (of.resized_crop && !does_more) return {};
  return yaml::error_at(
      *data.find("decode"),
      does_more ? "train.data.decode is nvjpeg, which does not do crop and color-jitter"
                : "train.data.decode is nvjpeg, and train.data.augment has no random-resized-crop",
      "use augment: [random-resized-crop, flip], or leave decode out");
}

// memory is also what decides whether images are decoded once, which may be more.
Result<void> read_decoding(Fields& data, const TrainSpec& spec, DecodeOptions& out) {
  out.evaluation = TRY(read_evaluation(data, spec.augmentation));
  out.memory = std::min(out.memory, TRY(data.size_or("memory", out.memory)));
  if (data.has("workers")) out.workers = static_cast<unsigned>(TRY(data.integer_or("workers", 1, 1, 1024)));
  static const std::vector<std::string> decoders{"cpu", "nvjpeg"};
  out.by = static_cast<DecodeOptions::By>(TRY(data.choice_or("decode", 0, decoders)));
  if (out.by == DecodeOptions::By::device) TRY(check_decode_by_gpu(data, spec));
  return {};
}

}  // namespace

Result<void> read_data_section(Fields& train, TrainSpec& out) {
  Fields data = TRY(Fields::of(*TRY(train.require("data")), train.path("data")));
  out.data = TRY(read_data_source(data));
  if (out.data.source->kind() == SampleKind::tokens) return data.finish();
  const std::size_t channels = out.data.source->channels();
  out.conversion.mean = TRY(read_per_channel(data, "mean", -kMaxNumber, channels));
  out.conversion.std_dev = TRY(read_per_channel(data, "std", kMinStd, channels));
  if (const yaml::Node* mean = data.find("mean")) out.mean_where = mean->source;
  if (const yaml::Node* std_dev = data.find("std")) out.std_where = std_dev->source;
  if (out.data.source->holds_numbers()) return read_number_scaling(data, out);
  out.augmentation = TRY(read_augmentation(data));
  TRY(read_decoding(data, out, out.decoding));
  if (const yaml::Node* augment = data.find("augment");
      augment != nullptr && out.augmentation.needs_images() && !out.data.source->keeps_images())
    return yaml::error_at(*augment,
                          "train.data.augment asks for random-resized-crop or color-jitter, and the "
                          "samples of this format have one size and no more pixels",
                          "use [crop, flip], or format images, list, webdataset, tfrecord or lmdb");
  return data.finish();
}

}  // namespace dlrun::runtime
