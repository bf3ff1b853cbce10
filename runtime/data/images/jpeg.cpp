// JPEG by libjpeg-turbo. Its errors leave by longjmp, so the function that it may leave holds nothing that
// needs a destructor; what it needs is in DecodeWork.
#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

#include "runtime/data/images/exif.hpp"
#include "runtime/data/images/image.hpp"

namespace dlrun::runtime {
namespace {

struct DecodeWork {
  jpeg_error_mgr errors{};  // first: libjpeg hands back a pointer to it
  std::jmp_buf way_out{};
  char said[JMSG_LENGTH_MAX]{};
  bool cut_off = false;
  jpeg_decompress_struct decoder{};
  std::vector<std::uint8_t> rows;
  int orientation = 1;
  const ChooseBox* choose = nullptr;                    // null: all of the image
  Box chosen;                                           // of the upright image
  JDIMENSION left = 0, top = 0, width = 0, height = 0;  // the rows' place in the file's image
};

void leave(j_common_ptr info) {
  auto* work = reinterpret_cast<DecodeWork*>(info->err);
  info->err->format_message(info, work->said);
  std::longjmp(work->way_out, 1);
}

// Warnings: most are harmless, but an end that came too early means grey pixels below.
void hear(j_common_ptr info, int level) {
  if (level < 0 && (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER))
    reinterpret_cast<DecodeWork*>(info->err)->cut_off = true;
}

void find_orientation(DecodeWork& work) {
  for (jpeg_saved_marker_ptr marker = work.decoder.marker_list; marker != nullptr; marker = marker->next)
    work.orientation = exif_orientation({marker->data, marker->data_length}).value_or(work.orientation);
}

// What is decoded: the box and some pixels around it, since a pixel's colour is taken from its neighbours'
// too where a file has half of them. A turned image is decoded as a whole.
void choose_part(DecodeWork& work) {
  constexpr std::int64_t margin = 16;  // a block of the file, colours halved
  jpeg_decompress_struct& decoder = work.decoder;
  work.width = decoder.output_width;
  work.height = decoder.output_height;
  if (work.choose == nullptr) return;
  const bool swaps = work.orientation >= 5;
  work.chosen = (*work.choose)(swaps ? work.height : work.width, swaps ? work.width : work.height);
  if (work.orientation > 1) return;
  const Box& box = work.chosen;
  const auto begin = [](std::int64_t at) {
    return static_cast<JDIMENSION>(std::max<std::int64_t>(0, at - margin));
  };
  work.left = begin(box.left);
  work.top = begin(box.top);
  work.width = std::min(work.width, static_cast<JDIMENSION>(box.left + box.width + margin)) - work.left;
  work.height = std::min(work.height, static_cast<JDIMENSION>(box.top + box.height + margin)) - work.top;
  if (work.width < decoder.output_width) jpeg_crop_scanline(&decoder, &work.left, &work.width);
  if (work.top > 0) jpeg_skip_scanlines(&decoder, work.top);
}

// The decoder's rows into work.rows; false where libjpeg gave up.
bool decode(DecodeWork& work, std::span<const std::uint8_t> file) {
  if (setjmp(work.way_out) != 0) return false;  // NOLINT: libjpeg's way to tell of errors
  jpeg_create_decompress(&work.decoder);
  jpeg_mem_src(&work.decoder, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_save_markers(&work.decoder, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&work.decoder, TRUE);
  find_orientation(work);
  const bool cmyk = work.decoder.jpeg_color_space == JCS_CMYK || work.decoder.jpeg_color_space == JCS_YCCK;
  work.decoder.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  if (std::int64_t{work.decoder.image_width} * work.decoder.image_height > kMaxPixels) {
    std::snprintf(work.said, sizeof work.said, "%u x %u pixels are too many", work.decoder.image_width,
                  work.decoder.image_height);
    return false;
  }
  jpeg_start_decompress(&work.decoder);
  choose_part(work);
  const std::size_t row = std::size_t{work.width} * (cmyk ? 4 : 3);
  work.rows.resize(row * work.height);
  while (work.decoder.output_scanline < work.top + work.height) {
    JSAMPROW target = work.rows.data() + row * (work.decoder.output_scanline - work.top);
    jpeg_read_scanlines(&work.decoder, &target, 1);
  }
  if (work.decoder.output_scanline == work.decoder.output_height) jpeg_finish_decompress(&work.decoder);
  return true;
}

// Four inks to three lights. Adobe writes the inks inverted, and nearly everybody's files are Adobe's.
std::vector<std::uint8_t> cmyk_to_rgb(const std::vector<std::uint8_t>& inks, bool inverted) {
  std::vector<std::uint8_t> out;
  out.reserve(inks.size() / 4 * 3);
  const auto light = [&](std::uint8_t ink) { return inverted ? int{ink} : 255 - ink; };
  for (std::size_t i = 0; i + 3 < inks.size(); i += 4)
    for (std::size_t colour = 0; colour < 3; ++colour)
      out.push_back(static_cast<std::uint8_t>(light(inks[i + colour]) * light(inks[i + 3]) / 255));
  return out;
}

}  // namespace

namespace {

// Runs the decoder, and turns its result.
Result<Image> decode_with(DecodeWork& work, std::span<const std::uint8_t> file, const std::string& name) {
  work.decoder.err = jpeg_std_error(&work.errors);
  work.errors.error_exit = leave;
  work.errors.emit_message = hear;
  const bool whole = decode(work, file);
  Image out{.width = work.width, .height = work.height, .pixels = {}};
  const bool cmyk = work.decoder.out_color_space == JCS_CMYK, adobe = work.decoder.saw_Adobe_marker != 0;
  jpeg_destroy_decompress(&work.decoder);
  if (!whole)
    return fail({.kind = ErrorKind::input, .what = fmt::format("JPEG: {}", work.said), .where = name});
  if (work.cut_off)
    return fail({.kind = ErrorKind::input, .what = "JPEG: the image data ends early", .where = name});
  out.pixels = cmyk ? cmyk_to_rgb(work.rows, adobe) : std::move(work.rows);
  return turned(std::move(out), work.orientation);
}

}  // namespace

Result<Image> decode_jpeg(std::span<const std::uint8_t> file, const std::string& name) {
  DecodeWork work;
  return decode_with(work, file, name);
}

Result<DecodedBox> decode_jpeg_box(std::span<const std::uint8_t> file, const std::string& name,
                                   const ChooseBox& choose) {
  DecodeWork work;
  work.choose = &choose;
  DecodedBox out{.image = TRY(decode_with(work, file, name)), .box = work.chosen};
  out.box.left -= work.left;
  out.box.top -= work.top;
  return out;
}

}  // namespace dlrun::runtime
