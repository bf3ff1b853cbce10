// See augment_section.hpp.
#include "runtime/data/augment_section.hpp"

#include <algorithm>

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using YamlNode = yaml::Node;

constexpr double kUsualCentre = 0.875;  // 224 of 256 pixels

// [low, high], both within a range.
Result<void> read_range(Fields& fields, std::string_view key, double most, double& low, double& high) {
  const YamlNode* node = fields.find(key);
  if (node == nullptr) return {};
  const std::string name = fields.path(key);
  if (node->kind != yaml::Kind::list || node->items.size() != 2)
    return yaml::error_at(*node, name + " must be a list of two numbers");
  low = TRY(yaml::as_number(node->items[0], name, 1e-3, most));
  high = TRY(yaml::as_number(node->items[1], name, low, most));
  return {};
}

// random-resized-crop: true | {scale: [0.08, 1], ratio: [0.75, 1.33]}
Result<void> read_resized_crop(Fields& augment, Augmentation& out) {
  const YamlNode* node = augment.find("random-resized-crop");
  if (node == nullptr) return {};
  RandomResizedCrop crop;
  if (node->kind != yaml::Kind::map) {
    if (TRY(yaml::as_bool(*node, augment.path("random-resized-crop")))) out.resized_crop = crop;
    return {};
  }
  Fields fields = TRY(Fields::of(*node, augment.path("random-resized-crop")));
  TRY(read_range(fields, "scale", 1, crop.min_scale, crop.max_scale));
  TRY(read_range(fields, "ratio", 100, crop.min_ratio, crop.max_ratio));
  TRY(fields.finish());
  out.resized_crop = crop;
  return {};
}

Result<void> read_jitter(Fields& augment, ColorJitter& out) {
  const YamlNode* node = augment.find("color-jitter");
  if (node == nullptr) return {};
  Fields fields = TRY(Fields::of(*node, augment.path("color-jitter")));
  out.brightness = TRY(fields.number_or("brightness", 0, 0, 10));
  out.contrast = TRY(fields.number_or("contrast", 0, 0, 10));
  out.saturation = TRY(fields.number_or("saturation", 0, 0, 10));
  out.hue = TRY(fields.number_or("hue", 0, 0, 0.5));
  return fields.finish();
}

Result<Augmentation> read_map(const YamlNode& node, const std::string& path) {
  Augmentation out;
  Fields fields = TRY(Fields::of(node, path));
  out.crop_padding = TRY(fields.integer_or("crop", 0, 0, 1024));
  out.flip = TRY(fields.bool_or("flip", false));
  TRY(read_resized_crop(fields, out));
  TRY(read_jitter(fields, out.jitter));
  TRY(fields.finish());
  return out;
}

Result<void> take_word(const YamlNode& item, const std::string& path, Augmentation& out) {
  static const std::vector<std::string> names = {"crop", "flip", "random-resized-crop", "none"};
  const std::size_t which = TRY(yaml::as_choice(item, path, names));
  if (which == 0) out.crop_padding = 4;
  if (which == 1) out.flip = true;
  if (which == 2) out.resized_crop.emplace();
  return {};
}

}  // namespace

Result<Augmentation> read_augmentation(Fields& data) {
  Augmentation out;
  const YamlNode* node = data.find("augment");
  if (node == nullptr) return out;
  if (node->kind == yaml::Kind::map) return read_map(*node, data.path("augment"));
  if (node->kind != yaml::Kind::list) {
    TRY(take_word(*node, data.path("augment"), out));
    return out;
  }
  for (const YamlNode& item : node->items) TRY(take_word(item, data.path("augment"), out));
  return out;
}

bool needs_whole_images(Fields& data) {
  const auto augmentation = read_augmentation(data);
  return (augmentation && augmentation->needs_images()) || data.has("centre-crop");
}

Result<Evaluation> read_evaluation(Fields& data, const Augmentation& augmentation) {
  Evaluation out;
  if (augmentation.resized_crop) out.centre_crop = kUsualCentre;
  if (data.has("centre-crop")) out.centre_crop = TRY(data.number_or("centre-crop", 1, 0.1, 1));
  return out;
}

}  // namespace dlrun::runtime
