// Small data sets on disk for tests: files of the true formats, made to order and then damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <unistd.h>
#include <zlib.h>

#include "src/base/file.hpp"
#include "tests/unit/folder.hpp"

namespace dlrun::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::string big_endian(std::uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift & 0xff));
  return out;
}

// An IDX file whose body is the bytes 0, 1, 2, ... (modulo `modulus`).
inline std::string idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  std::string out = big_endian(2051) + big_endian(count) + big_endian(height) + big_endian(width);
  for (std::uint32_t i = 0; i < count * height * width; ++i) out.push_back(static_cast<char>(i * 7));
  return out;
}
inline std::string idx_labels(std::uint32_t count) {
  std::string out = big_endian(2049) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) out.push_back(static_cast<char>(i % 10));
  return out;
}

inline std::string gzip(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace dlrun::test
