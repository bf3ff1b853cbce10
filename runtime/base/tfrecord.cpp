// See tfrecord.hpp.
#include "runtime/base/tfrecord.hpp"

namespace dlrun::runtime {
namespace {

template <class Number>
void append_little(std::string& out, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

template <class Number>
Number little(std::string_view bytes) {
  Number value = 0;
  for (std::size_t i = sizeof value; i-- > 0;)
    value = static_cast<Number>(value << 8 | static_cast<unsigned char>(bytes[i]));
  return value;
}

}  // namespace

std::string frame_record(std::string_view data) {
  std::string out;
  out.reserve(data.size() + 16);
  append_little<std::uint64_t>(out, data.size());
  append_little<std::uint32_t>(out, masked_crc32c(out));
  out += data;
  append_little<std::uint32_t>(out, masked_crc32c(data));
  return out;
}

Result<std::vector<std::string_view>> parse_records(std::string_view content, const std::string& name) {
  std::vector<std::string_view> out;
  std::size_t at = 0;
  const auto bad = [&](std::string what) {
    return fail(Error{.kind = ErrorKind::input,
                      .what = std::move(what),
                      .where = fmt::format("{}: record {} at offset {}", name, out.size(), at)});
  };
  while (at < content.size()) {
    const std::string_view rest = content.substr(at);
    if (rest.size() < 12)
      return bad(fmt::format("ends within the header of 12 bytes ({} are there)", rest.size()));
    if (masked_crc32c(rest.substr(0, 8)) != little<std::uint32_t>(rest.substr(8, 4)))
      return bad("the CRC of the length is wrong");
    const auto length = little<std::uint64_t>(rest);
    if (rest.size() - 12 < 4 || length > rest.size() - 16)
      return bad(fmt::format("ends early: {} bytes of data were announced", length));
    const std::string_view data = rest.substr(12, length);
    if (masked_crc32c(data) != little<std::uint32_t>(rest.substr(12 + length, 4)))
      return bad("the CRC of the data is wrong");
    out.push_back(data);
    at += 16 + length;
  }
  return out;
}

}  // namespace dlrun::runtime
