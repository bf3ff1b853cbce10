// See gpu_decoder.hpp. The host computes what each pixel of a result is made of, as it does where it scales
// images itself; the GPU carries that out.
#include "runtime/train/gpu_decoder.hpp"

#include "runtime/cuda/jpeg_decoders.hpp"

namespace dlrun::runtime {
namespace {

// The taps of an axis as the GPU reads them.
struct AxisTaps {
  Taps taps;
  std::vector<DlrunCudaTap> pixels;

  AxisTaps(std::int64_t extent, const Axis& axis) : taps(taps_of(extent, axis)) {
    pixels.reserve(taps.pixels.size());
    for (const Taps::Span& span : taps.pixels)
      pixels.push_back({static_cast<std::int32_t>(span.first), static_cast<std::int32_t>(span.begin),
                        static_cast<std::int32_t>(span.count)});
  }
  DlrunCudaTaps view() const {
    return {pixels.data(), pixels.size(), taps.coefficients.data(), taps.coefficients.size()};
  }
};

class GpuDecoder final : public BatchDecoder {
 public:
  explicit GpuDecoder(std::unique_ptr<JpegDecoders> decoders) : decoders_(std::move(decoders)) {}

  std::size_t usual() const override { return 64; }

  Result<void> decode(std::span<Image> images) override {
    if (images.empty()) return {};
    std::vector<AxisTaps> taps;  // of the columns and the rows of each
    taps.reserve(2 * images.size());
    std::vector<DlrunCudaJpeg> asked;
    for (const Image& image : images) {
      const Scaling& by = image.cut.scaling;
      const AxisTaps& columns = taps.emplace_back(by.box.width, by.columns);
      const AxisTaps& rows = taps.emplace_back(by.box.height, by.rows);
      asked.push_back({.file = image.file.data(),
                       .length = image.file.size(),
                       .width = image.width,
                       .height = image.height,
                       .left = by.box.left,
                       .top = by.box.top,
                       .columns = columns.view(),
                       .rows = rows.view(),
                       .mirrored = image.cut.side == Side::mirrored ? 1 : 0,
                       .row = image.row.data(),
                       .done = 0});
    }
    TRY(decoders_->decode(asked));
    for (std::size_t i = 0; i < images.size(); ++i) images[i].is_done = asked[i].done != 0;
    return {};
  }

 private:
  std::unique_ptr<JpegDecoders> decoders_;
};

}  // namespace

Error needs_gpu() {
  return Error{.kind = ErrorKind::usage,
               .what = "train.data.decode is nvjpeg, and this rank computes on the CPU",
               .where = {},
               .hint = "set train.device to cuda, or leave train.data.decode out"};
}

Result<std::shared_ptr<BatchDecoder>> make_gpu_decoder(const Device& device, const InputShape& shape) {
  if (!device.library) return fail(needs_gpu());
  return std::make_shared<GpuDecoder>(
      TRY(JpegDecoders::open(*device.library, device.number, shape.channels)));
}

}  // namespace dlrun::runtime
