// By libpng's interface of rows, which leaves the numbers alone. Its errors leave by longjmp, so the
// functions that it may leave hold nothing that needs a destructor; what they need is in PngWork.
#include "runtime/data/images/deep_png.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "runtime/base/mapped_file.hpp"
#include "runtime/data/images/image.hpp"

namespace dlrun::runtime {
namespace {

struct PngWork {
  std::span<const std::byte> file;
  std::size_t at = 0;  // of the file
  char said[128] = {};
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_uint_16> numbers;
  std::vector<png_bytep> rows;

  PngWork() = default;
  PngWork(const PngWork&) = delete;
  PngWork& operator=(const PngWork&) = delete;
  ~PngWork() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void leave(png_structp png, png_const_charp text) {
  auto* const work = static_cast<PngWork*>(png_get_error_ptr(png));
  std::snprintf(work->said, sizeof work->said, "%s", text);
  png_longjmp(png, 1);
}

void ignore(png_structp /*png*/, png_const_charp /*text*/) {}

void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto* const work = static_cast<PngWork*>(png_get_io_ptr(png));
  if (count > work->file.size() - work->at) png_error(png, "the file is cut short");
  std::memcpy(out, work->file.data() + work->at, count);
  work->at += count;
}

// False where libpng gave up.
bool read_header(PngWork& work) {
  work.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &work, leave, ignore);
  if (work.png == nullptr) return false;
  if (setjmp(png_jmpbuf(work.png)) != 0) return false;  // NOLINT: libpng's way to tell of errors
  work.info = png_create_info_struct(work.png);
  png_set_read_fn(work.png, &work, read_bytes);
  png_read_info(work.png, work.info);
  return true;
}

// Behind read_header(), into work.rows.
bool read_pixels(PngWork& work) {
  if (setjmp(png_jmpbuf(work.png)) != 0) return false;  // NOLINT: libpng's way to tell of errors
  png_set_swap(work.png);                               // PNG is big-endian
  png_set_interlace_handling(work.png);
  png_read_update_info(work.png, work.info);
  png_read_image(work.png, work.rows.data());
  png_read_end(work.png, nullptr);
  return true;
}

struct Extents {
  std::uint64_t width = 0, height = 0, channels = 0;
  friend bool operator==(const Extents&, const Extents&) = default;
};

Extents extents_of(const PngWork& work) {
  return {png_get_image_width(work.png, work.info), png_get_image_height(work.png, work.info),
          png_get_channels(work.png, work.info)};
}

// Why its numbers are not those that a model is to see; empty where they are.
std::string refusal(const PngWork& work) {
  const int bits = png_get_bit_depth(work.png, work.info), colour = png_get_color_type(work.png, work.info);
  if (bits != 16)
    return fmt::format("PNG: has {} bit{} per channel, and data.bit-depth is 16", bits, bits == 1 ? "" : "s");
  if ((colour & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(work.png, work.info, PNG_INFO_tRNS) != 0)
    return "PNG: has transparency, and with data.bit-depth 16 images are grey or in colour";
  const Extents of = extents_of(work);
  if (of.width * of.height > kMaxPixels)
    return fmt::format("PNG: {} x {} pixels are too many", of.width, of.height);
  return {};
}

Result<void> open(PngWork& work, const MappedFile& file) {
  work.file = file.bytes();
  constexpr std::size_t kSignature = 8;
  if (work.file.size() < kSignature ||
      png_sig_cmp(reinterpret_cast<png_const_bytep>(work.file.data()), 0, kSignature) != 0)
    return bad_input(file.name(), "is not a PNG, and data.bit-depth is 16",
                     "remove bit-depth for images of 8 bits per channel");
  if (!read_header(work)) return bad_input(file.name(), fmt::format("PNG: {}", work.said));
  const std::string problem = refusal(work);
  if (problem.empty()) return {};
  return bad_input(file.name(), problem, "convert the image, or remove bit-depth");
}

std::vector<std::uint64_t> shape_of(const Extents& of) {
  if (of.channels == 1) return {1, of.height, of.width};
  return {1, of.height, of.width, of.channels};
}

class DeepPng final : public NumberArray {
 public:
  DeepPng(const std::filesystem::path& file, const Extents& extents)
      : NumberArray(file.string(), NumberType::uint16, shape_of(extents)), extents_(extents) {}

  Result<void> read(std::uint64_t /*row*/, std::span<float> out) const override { return decode_into(out); }
  Result<std::vector<double>> read_all() const override {
    std::vector<double> out(numbers_per_row());
    TRY(decode_into(std::span(out)));
    return out;
  }
  std::string place(std::uint64_t number) const override {
    const std::uint64_t pixel = number / extents_.channels;
    return fmt::format("{}: column {} of row {}", name(), pixel % extents_.width, pixel / extents_.width);
  }

 private:
  template <class Number>
  Result<void> decode_into(std::span<Number> out) const {
    const MappedFile file = TRY(MappedFile::open(name()));
    PngWork work;
    TRY(open(work, file));
    if (extents_of(work) != extents_) return bad_input(name(), "has another size than when the run began");
    work.numbers.resize(out.size());
    for (std::uint64_t y = 0; y < extents_.height; ++y)
      work.rows.push_back(
          reinterpret_cast<png_bytep>(work.numbers.data() + y * extents_.width * extents_.channels));
    if (!read_pixels(work)) return bad_input(name(), fmt::format("PNG: {}", work.said));
    std::copy(work.numbers.begin(), work.numbers.end(), out.begin());
    return {};
  }

  Extents extents_;
};

}  // namespace

Result<std::shared_ptr<const NumberArray>> open_deep_png(const std::filesystem::path& file) {
  const MappedFile mapped = TRY(MappedFile::open(file));
  PngWork work;
  TRY(open(work, mapped));
  return std::make_shared<const DeepPng>(file, extents_of(work));
}

SampleAxes axes_of_deep_png(const NumberArray& image) {
  return SampleAxes::of(image.shape().size() > 3 ? "HWC" : "HW").value();
}

}  // namespace dlrun::runtime
