// Small containers of each kind, made to order.
#pragma once

#include "image_support.hpp"
#include "runtime/base/protobuf.hpp"
#include "runtime/base/tfrecord.hpp"
#include "runtime/data/data_format.hpp"
#include "runtime/data/encoded/tar.hpp"
#include "runtime/data/gzip.hpp"
#include "runtime/data/images/image.hpp"

namespace dlrun::test {

/// A JPEG of 16x16 pixels that differ by `number`.
inline std::string photo(int number) {
  return jpeg_of(16, 16, [&](int x, int y) {
    return std::vector<std::uint8_t>{static_cast<std::uint8_t>(x * 15), static_cast<std::uint8_t>(y * 15),
                                     static_cast<std::uint8_t>(number * 10)};
  });
}

inline std::string grey_png(std::uint8_t value) {
  return png_of<std::uint8_t>(4, 4, PNG_FORMAT_GRAY, std::vector<std::uint8_t>(16, value));
}

/// An image's pixels in planes of 8x8, as they are evaluated.
inline std::vector<float> decoded(const std::string& file) {
  const runtime::Image image = runtime::fitted(
      runtime::decode_image({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "photo")
          .value(),
      8, 8);
  std::vector<float> out;
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t i = 0; i < 64; ++i) out.push_back(image.pixels[3 * i + channel]);
  return out;
}

inline runtime::ProtoWriter feature(std::uint32_t kind, const runtime::ProtoWriter& list) {
  return runtime::ProtoWriter().message(kind, list);
}

inline std::string example_of(const std::string& image, const runtime::ProtoWriter& label) {
  runtime::ProtoWriter features;
  const auto add = [&](const std::string& key, const runtime::ProtoWriter& value) {
    features.message(1, runtime::ProtoWriter().bytes(1, key).message(2, value));
  };
  add("image/class/label", label);
  add("image/encoded", feature(1, runtime::ProtoWriter().bytes(1, image)));
  return runtime::ProtoWriter().message(1, features).text();
}

inline std::string example(const std::string& image, std::uint8_t label) {
  return example_of(image,
                    feature(3, runtime::ProtoWriter().bytes(1, std::string(1, static_cast<char>(label)))));
}
inline std::string unpacked_example(const std::string& image, std::uint8_t label) {
  return example_of(image, feature(3, runtime::ProtoWriter().varint(1, label)));
}

/// A database of 40 Datums that liblmdb wrote.
inline std::string recorded_lmdb() {
  const std::string stored =
      read_file(std::filesystem::path(TEST_DATA_DIR) / "recorded/caffe_datum.mdb.gz").value();
  std::string out(24576, '\0');
  const auto length =
      runtime::gunzip(std::as_bytes(std::span(stored)), std::as_writable_bytes(std::span(out)), "recorded");
  if (!length) std::abort();
  return out;
}

/// Images of 8x8 and three classes, unless `more` says other.
inline Result<runtime::DataParts> load_container(const Folder& folder, const std::string& format,
                                                 const std::string& more = "") {
  const std::string classes = contains(more, "classes") ? "" : "classes: 3, ";
  const yaml::Node node = yaml::parse(fmt::format("{{format: {}, dir: {}, {}size: 8, {}}}", format,
                                                  folder.path.string(), classes, more),
                                      "job.yaml")
                              .value();
  yaml::Fields fields = TRY(yaml::Fields::of(node, "train.data"));
  const runtime::DataSpec spec = TRY(runtime::read_data_source(fields));
  return spec.source->load(1);
}

}  // namespace dlrun::test
