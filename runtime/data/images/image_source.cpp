// The formats `images` and `list`: their keys in train.data, and their DataSource.
#include "runtime/data/images/image_data.hpp"

namespace dlrun::runtime {
namespace {

using yaml::Fields;
using yaml::Node;

class ImageSource final : public DataSource {
 public:
  explicit ImageSource(ImageSpec spec) : spec_(std::move(spec)) {}
  std::size_t channels() const override { return 3; }
  Result<InputShape> probe() const override { return probe_images(spec_); }
  Result<DataParts> load(std::uint64_t) const override { return load_images(spec_); }
  std::string place() const override { return spec_.place().string(); }

 private:
  ImageSpec spec_;
};

// size: 224, or [height, width]
Result<void> read_size(Fields& data, ImageSpec& out) {
  const Node* size = data.find("size");
  if (size == nullptr) return {};
  const bool two = size->kind == yaml::Kind::list && size->items.size() == 2;
  if (size->kind == yaml::Kind::list && !two)
    return yaml::error_at(*size, "train.data.size must be a number, or [height, width]");
  out.height = TRY(yaml::as_integer(two ? size->items[0] : *size, "train.data.size", 1, 1 << 13));
  out.width = TRY(yaml::as_integer(two ? size->items[1] : *size, "train.data.size", 1, 1 << 13));
  return {};
}

// size; damaged: refuse | drop
Result<ImageSpec> read_images(Fields& data, double train_share) {
  ImageSpec out{.train_share = train_share};
  TRY(read_size(data, out));
  static const std::vector<std::string> choices = {"refuse", "drop"};
  out.damaged = TRY(data.choice_or("damaged", 0, choices)) == 0 ? Damaged::refused : Damaged::dropped;
  return out;
}

}  // namespace

std::shared_ptr<const DataSource> make_image_source(ImageSpec spec) {
  return std::make_shared<ImageSource>(std::move(spec));
}

DataFormat::Read read_images_section, read_list_section;

Result<std::shared_ptr<const DataSource>> read_images_section(Fields& data, double train_share) {
  ImageSpec out = TRY(read_images(data, train_share));
  out.directory = TRY(data.text("dir"));
  return make_image_source(std::move(out));
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
  return make_image_source(std::move(out));
}

}  // namespace dlrun::runtime
