// The formats `images` and `list`: their keys in train.data, and their DataSource for images of 8 bits per
// channel; of 16 see deep_image_data.hpp.
#include "runtime/data/augment_section.hpp"
#include "runtime/data/images/deep_image_data.hpp"
#include "runtime/data/images/image_data.hpp"
#include "runtime/data/images/packed.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;

class ImageSource final : public DataSource {
 public:
  explicit ImageSource(ImageSpec spec) : spec_(std::move(spec)) {}
  std::size_t channels() const override { return static_cast<std::size_t>(spec_.channels); }
  Result<InputShape> probe() const override { return probe_images(spec_); }
  Result<DataParts> load(std::uint64_t) const override { return load_images(spec_); }
  bool keeps_images() const override { return !is_packed(spec_.directory); }
  std::string place() const override { return spec_.place().string(); }

 private:
  ImageSpec spec_;
};

// size; channels; damaged: refuse | drop
Result<ImageSpec> read_images(Fields& data, double train_share) {
  ImageSpec out{.train_share = train_share};
  const ImageSize size = TRY(read_image_size(data));
  out.height = size.height;
  out.width = size.width;
  out.channels = TRY(data.integer_or("channels", out.channels, 1, 3));
  if (out.channels == 2) return yaml::error_at(*data.find("channels"), "train.data.channels must be 1 or 3");
  out.damaged = TRY(read_damaged(data));
  out.memory = TRY(data.size_or("memory", out.memory));
  // Every epoch cuts other parts out of them.
  if (needs_whole_images(data)) out.keep = ImageSpec::Keep::compressed;
  return out;
}

// bit-depth: 8 | 16, with which channels are those of the files unless they are set.
Result<std::shared_ptr<const DataSource>> make_source(Fields& data, ImageSpec spec) {
  const yaml::Node* depth = data.find("bit-depth");
  const std::int64_t bits = TRY(data.integer_or("bit-depth", 8, 8, 16));
  if (bits != 8 && bits != 16) return yaml::error_at(*depth, "train.data.bit-depth must be 8 or 16");
  if (bits == 8) return make_image_source(std::move(spec));
  TRY(check_deep_keys(data));
  const auto channels = data.has("channels") ? std::optional(spec.channels) : std::nullopt;
  return make_deep_image_source(std::move(spec), channels);
}

}  // namespace

std::shared_ptr<const DataSource> make_image_source(ImageSpec spec) {
  return std::make_shared<ImageSource>(std::move(spec));
}

DataFormat::Read read_images_section, read_list_section;

Result<std::shared_ptr<const DataSource>> read_images_section(Fields& data, double train_share) {
  ImageSpec out = TRY(read_images(data, train_share));
  out.directory = TRY(data.text("dir"));
  if (out.channels != 3 && is_packed(out.directory))
    return yaml::error_at(*data.find("channels"),
                          "train.data.channels is 1, and the images of this folder were packed with 3",
                          "remove channels, or name the folder of the images themselves");
  return make_source(data, std::move(out));
}

// list: train.txt, test-list: val.txt
Result<std::shared_ptr<const DataSource>> read_list_section(Fields& data, double train_share) {
  ImageSpec out;
  const std::int64_t classes =
      TRY(data.integer_or("classes", out.classes, 2, static_cast<std::int64_t>(kMaxClasses)));
  out = TRY(read_images(data, train_share));
  out.classes = classes;
  out.list = TRY(yaml::as_text(*TRY(data.require("list")), "train.data.list"));
  out.test_list = TRY(data.text_or("test-list", ""));
  out.directory = TRY(data.text_or("dir", ""));
  return make_source(data, std::move(out));
}

}  // namespace dlrun::runtime
