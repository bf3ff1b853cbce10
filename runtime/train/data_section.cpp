// See data_section.hpp.
#include "runtime/train/data_section.hpp"

#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using yaml::Node;

// A number per channel, or one for all.
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

Result<void> read_data_section(Fields& train, TrainSpec& out) {
  Fields data = TRY(Fields::of(*TRY(train.require("data")), train.path("data")));
  out.data = TRY(read_data_source(data));
  const std::size_t channels = out.data.source->channels();
  out.conversion.mean = TRY(read_per_channel(data, "mean", -1e3, channels));
  out.conversion.std_dev = TRY(read_per_channel(data, "std", 1e-6, channels));
  out.augmentation = TRY(read_augmentation(data));
  return data.finish();
}

}  // namespace dlrun::runtime
