// See deep_image_data.hpp.
#include "runtime/data/images/deep_image_data.hpp"

#include <optional>

#include "runtime/base/counted.hpp"
#include "runtime/data/augment_section.hpp"
#include "runtime/data/images/deep_png.hpp"
#include "runtime/data/images/packed.hpp"
#include "runtime/data/images/sharded.hpp"
#include "runtime/data/numbers/number_samples.hpp"

namespace dlrun::runtime {
namespace {

using Extents = std::vector<std::uint64_t>;

std::string size_text(const NumberArray& image) {
  const Extents& shape = image.shape();  // [1, height, width], and perhaps channels
  return fmt::format("{} x {} pixels in {}", shape[2], shape[1],
                     counted(shape.size() > 3 ? shape[3] : std::uint64_t{1}, "channel"));
}

class DeepImageSource final : public DataSource {
 public:
  DeepImageSource(ImageSpec spec, std::optional<std::int64_t> channels)
      : spec_(std::move(spec)), channels_(channels) {}

  std::size_t channels() const override { return static_cast<std::size_t>(channels_.value_or(0)); }
  bool holds_numbers() const override { return true; }
  int bit_depth() const override { return 16; }
  std::string place() const override { return spec_.place().string(); }
  Result<InputShape> probe() const override {
    const ImageSet set = TRY(find());
    return shape_of(*TRY(first_sound(set.train)), set);
  }
  Result<InputShape> check() const override { return TRY(load(0)).train.shape; }
  Result<DataParts> load(std::uint64_t) const override {
    const ImageSet set = TRY(find());
    const std::shared_ptr<const NumberArray> first = TRY(first_sound(set.train));
    const InputShape shape = TRY(shape_of(*first, set));
    DataParts out;
    if (!spec_.is_list()) out.classes = set.classes;
    out.train = TRY(open_all(set.train, *first, shape, out.notes));
    out.test = TRY(open_all(set.test, *first, shape, out.notes));
    return out;
  }

 private:
  Result<ImageSet> find() const {
    if (!spec_.is_list() && (is_packed(spec_.directory) || is_sharded(spec_.directory)))
      return bad_input(place(), "holds images that were packed, and data.bit-depth 16 reads PNG files",
                       "name the folder of the images themselves");
    return find_images(spec_);
  }

  // The one that tells what all are like.
  Result<std::shared_ptr<const NumberArray>> first_sound(const std::vector<ImageFile>& files) const {
    for (std::size_t i = 0;; ++i) {
      auto image = open_deep_png(files[i].path);
      if (image || spec_.damaged == Damaged::refused || i + 1 == files.size()) return image;
    }
  }

  Result<InputShape> shape_of(const NumberArray& image, const ImageSet& set) const {
    InputShape out = axes_of_deep_png(image).shape_of(std::span(image.shape()).subspan(1));
    out.classes = static_cast<std::int64_t>(set.classes.size());
    if (channels_.value_or(out.channels) == out.channels) return out;
    return bad_input(
        image.name(),
        fmt::format("has {}, and data.channels is {}", counted(out.channels, "channel"), *channels_),
        "with data.bit-depth 16 images keep the channels that they have");
  }

  Result<Dataset> open_all(const std::vector<ImageFile>& files, const NumberArray& first,
                           const InputShape& shape, std::vector<std::string>& notes) const {
    Dataset out;
    out.shape = shape;
    out.damaged = spec_.damaged;
    NumberArrays images;
    for (const ImageFile& file : files) {
      auto image = open_deep_png(file.path);
      if (image && (*image)->shape() != first.shape())
        image = bad_input(
            (*image)->name(),
            fmt::format("has {}, and {} has {}: with data.bit-depth 16 images keep their size and channels",
                        size_text(**image), first.name(), size_text(first)),
            "bring them to one width, height and number of channels");
      if (!image && spec_.damaged == Damaged::refused) return tl::unexpected(std::move(image).error());
      if (!image) {
        notes.push_back("damaged image left out: " + image.error().text());
        continue;
      }
      images.push_back(*image);
      out.labels.push_back(file.label);
    }
    out.count = images.size();
    out.numbers = std::make_shared<const NumberSamples>(std::move(images), axes_of_deep_png(first));
    return out;
  }

  ImageSpec spec_;
  std::optional<std::int64_t> channels_;
};

}  // namespace

Result<void> check_deep_keys(yaml::Fields& data) {
  for (const char* key : {"size", "centre-crop"})
    if (const yaml::Node* node = data.find(key))
      return yaml::error_at(
          *node, fmt::format("train.data.{} scales pixels of 8 bits, and train.data.bit-depth is 16", key),
          fmt::format("remove {}: images of 16 bits keep the size that they have", key));
  const yaml::Node* augment = data.find("augment");
  if (augment == nullptr || !TRY(read_augmentation(data)).any()) return {};
  return yaml::error_at(*augment,
                        "train.data.augment changes pixels of 8 bits, and train.data.bit-depth is 16",
                        "remove augment, or remove bit-depth: images are then rounded to 8 bits");
}

std::shared_ptr<const DataSource> make_deep_image_source(ImageSpec spec,
                                                         std::optional<std::int64_t> channels) {
  return std::make_shared<DeepImageSource>(std::move(spec), channels);
}

}  // namespace dlrun::runtime
