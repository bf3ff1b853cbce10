// Arrays of numbers for tests: .npy and .npz files made to order, and then damaged; and the DataSource of a
// section of a job file.
#pragma once

#include <cstring>
#include <vector>

#include <zlib.h>

#include "runtime/data/data_format.hpp"
#include "tests/unit/data/support.hpp"

namespace dlrun::test {

template <class Number>
std::string raw_bytes(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

inline std::string little(std::uint64_t value, std::size_t width) {
  std::string out;
  for (std::size_t i = 0; i < width; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return out;
}

/// As numpy.save writes it. `shape` as Python has it: "(3, 4)".
inline std::string npy(const std::string& type, const std::string& shape, const std::string& numbers,
                       const std::string& fortran = "False") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + little(header.size(), 2) + header + numbers;
}

/// first, first + 1, ...
inline std::vector<float> counting(std::size_t count, float first = 0) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = first + static_cast<float>(i);
  return out;
}

inline std::string deflated(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
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

enum class Packing { stored, deflated };

/// As numpy.savez and numpy.savez_compressed write it: names with their files' content.
inline std::string npz(const std::vector<std::pair<std::string, std::string>>& arrays, Packing packing) {
  std::string out, directory;
  for (const auto& [name, content] : arrays) {
    const std::string file = name + ".npy", body = packing == Packing::stored ? content : deflated(content);
    const auto* const bytes = reinterpret_cast<const Bytef*>(content.data());
    const std::string common = little(packing == Packing::stored ? 0 : 8, 2) + little(0, 4) +
                               little(crc32(0, bytes, static_cast<uInt>(content.size())), 4) +
                               little(body.size(), 4) + little(content.size(), 4) + little(file.size(), 2);
    directory += little(0x02014b50, 4) + little(20, 2) + little(20, 2) + little(0, 2) + common +
                 little(0, 2) + little(0, 2) + little(0, 4) + little(0, 4) + little(out.size(), 4) + file;
    out += little(0x04034b50, 4) + little(20, 2) + little(0, 2) + common + little(0, 2) + file + body;
  }
  const std::size_t begin = out.size();
  return out + directory + little(0x06054b50, 4) + little(0, 4) + little(arrays.size(), 2) +
         little(arrays.size(), 2) + little(directory.size(), 4) + little(begin, 4) + little(0, 2);
}

/// Of the section {format: ..., train: 0.5, ...}, in which $ is the folder.
inline Result<std::shared_ptr<const runtime::DataSource>> number_source(const Folder& folder,
                                                                        std::string section) {
  for (std::size_t at = section.find('$'); at != std::string::npos; at = section.find('$'))
    section.replace(at, 1, folder.path.string());
  const yaml::Node node = yaml::parse("{" + section + "}", "job.yaml").value();
  yaml::Fields fields = TRY(yaml::Fields::of(node, "train.data"));
  const runtime::DataSpec spec = TRY(runtime::read_data_source(fields));
  TRY(fields.finish());
  return spec.source;
}

}  // namespace dlrun::test
