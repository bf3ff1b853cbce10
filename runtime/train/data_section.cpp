// See data_section.hpp.
#include "runtime/train/data_section.hpp"

#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using yaml::Node;

Result<DataFormat> read_format(Fields& data) {
  const Node* node = TRY(data.require("format"));
  static const std::vector<std::string> names = {"idx", "cifar10", "images", "list", "synthetic"};
  return static_cast<DataFormat>(TRY(yaml::as_choice(*node, data.path("format"), names)));
}

Result<void> read_synthetic(Fields& data, DataSpec& out) {
  out.synthetic_samples = static_cast<std::uint64_t>(TRY(data.integer_or("samples", 4096, 1, 1 << 30)));
  if (const Node* shape = data.find("shape")) {
    if (shape->kind != yaml::Kind::list || shape->items.size() != 3)
      return yaml::error_at(*shape, "train.data.shape must be [channels, height, width]");
    std::int64_t* sides[] = {&out.synthetic_shape.channels, &out.synthetic_shape.height,
                             &out.synthetic_shape.width};
    for (std::size_t i = 0; i < 3; ++i)
      *sides[i] = TRY(yaml::as_integer(shape->items[i], "train.data.shape", 1, 1 << 14));
  }
  out.synthetic_shape.classes = out.classes;
  return {};
}

// size: 224, or [height, width]; damaged: refuse | drop; list: train.txt, test-list: val.txt
Result<void> read_images(Fields& data, DataSpec& out) {
  if (const Node* size = data.find("size")) {
    const bool two = size->kind == yaml::Kind::list && size->items.size() == 2;
    if (size->kind == yaml::Kind::list && !two)
      return yaml::error_at(*size, "train.data.size must be a number, or [height, width]");
    out.height = TRY(yaml::as_integer(two ? size->items[0] : *size, "train.data.size", 1, 1 << 13));
    out.width = TRY(yaml::as_integer(two ? size->items[1] : *size, "train.data.size", 1, 1 << 13));
  }
  static const std::vector<std::string> ways = {"refuse", "drop"};
  out.damaged = TRY(data.choice_or("damaged", 0, ways)) == 0 ? Damaged::refused : Damaged::dropped;
  if (out.format != DataFormat::list) return {};
  out.list = TRY(yaml::as_text(*TRY(data.require("list")), "train.data.list"));
  out.test_list = TRY(data.text_or("test-list", ""));
  return {};
}

// A number a channel, or one for all.
Result<std::vector<double>> read_per_channel(Fields& data, std::string_view key, double low,
                                             std::size_t channels) {
  std::vector<double> out;
  const Node* node = data.find(key);
  if (node == nullptr) return out;
  const std::string name = data.path(key);
  if (node->kind == yaml::Kind::list)
    for (const Node& item : node->items) out.push_back(TRY(yaml::as_number(item, name, low, 1e3)));
  else
    out.assign(channels, TRY(yaml::as_number(*node, name, low, 1e3)));
  if (out.size() != channels)
    return yaml::error_at(*node, fmt::format("{} has {} numbers for {} channel{}", name, out.size(), channels,
                                             channels == 1 ? "" : "s"));
  return out;
}

// augment: [crop, flip], or {crop: 4, flip: true}
Result<Augmentation> read_augmentation(Fields& data) {
  Augmentation out;
  const Node* node = data.find("augment");
  if (node == nullptr) return out;
  if (node->kind == yaml::Kind::map) {
    Fields fields = TRY(Fields::of(*node, data.path("augment")));
    out.crop_padding = TRY(fields.integer_or("crop", 0, 0, 1024));
    out.flip = TRY(fields.bool_or("flip", false));
    TRY(fields.finish());
    return out;
  }
  static const std::vector<std::string> names = {"crop", "flip", "none"};
  const auto take = [&](const Node& item) -> Result<void> {
    const std::size_t which = TRY(yaml::as_choice(item, data.path("augment"), names));
    if (which == 0) out.crop_padding = 4;
    if (which == 1) out.flip = true;
    return {};
  };
  if (node->kind != yaml::Kind::list) {
    TRY(take(*node));
    return out;
  }
  for (const Node& item : node->items) TRY(take(item));
  return out;
}

}  // namespace

std::size_t channels_of(const DataSpec& spec) {
  switch (spec.format) {
    case DataFormat::idx:
      return 1;
    case DataFormat::cifar10:
    case DataFormat::images:
    case DataFormat::list:
      return 3;
    case DataFormat::synthetic:
      break;
  }
  return static_cast<std::size_t>(spec.synthetic_shape.channels);
}

Result<void> read_data_section(Fields& train, TrainSpec& out) {
  Fields data = TRY(Fields::of(*TRY(train.require("data")), train.path("data")));
  out.data.format = TRY(read_format(data));
  const bool counted = out.data.format == DataFormat::cifar10 || out.data.format == DataFormat::images;
  const std::int64_t most = out.data.format == DataFormat::idx ? 256 : 65536;
  if (!counted) out.data.classes = TRY(data.integer_or("classes", 10, 2, most));
  if (out.data.format == DataFormat::images || out.data.format == DataFormat::list)
    TRY(read_images(data, out.data));
  if (out.data.format == DataFormat::synthetic)
    TRY(read_synthetic(data, out.data));
  else if (out.data.format == DataFormat::list)
    out.data.directory = TRY(data.text_or("dir", ""));
  else
    out.data.directory = TRY(data.text("dir"));
  out.data.train_share = TRY(data.number_or("train", 1, 1e-6, 1));
  out.conversion.mean = TRY(read_per_channel(data, "mean", -1e3, channels_of(out.data)));
  out.conversion.deviation = TRY(read_per_channel(data, "std", 1e-6, channels_of(out.data)));
  out.augmentation = TRY(read_augmentation(data));
  return data.finish();
}

}  // namespace dlrun::runtime
