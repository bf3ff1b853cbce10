// See protobuf.hpp.
#include "runtime/base/protobuf.hpp"

#include <cstring>

namespace dlrun::runtime {

std::optional<std::uint64_t> ProtoReader::varint() {
  std::uint64_t out = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    out |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return out;
  }
  sound_ = false;
  return std::nullopt;
}

std::optional<std::uint64_t> ProtoReader::fixed(std::size_t size) {
  if (rest_.size() < size) {
    sound_ = false;
    return std::nullopt;
  }
  std::uint64_t out = 0;
  for (std::size_t i = size; i-- > 0;) out = out << 8 | static_cast<unsigned char>(rest_[i]);
  rest_.remove_prefix(size);
  return out;
}

std::optional<ProtoField> ProtoReader::next() {
  if (rest_.empty() || !sound_) return std::nullopt;
  const auto tag = varint();
  if (!tag) return std::nullopt;
  ProtoField out{.number = static_cast<std::uint32_t>(*tag >> 3),
                 .kind = static_cast<ProtoField::Kind>(*tag & 7),
                 .value = 0,
                 .bytes = {}};
  std::optional<std::uint64_t> value;
  if (out.kind == ProtoField::Kind::fixed64) value = fixed(8);
  if (out.kind == ProtoField::Kind::fixed32) value = fixed(4);
  if (out.kind == ProtoField::Kind::varint || out.kind == ProtoField::Kind::bytes) value = varint();
  sound_ = sound_ && value && (*tag >> 3) != 0 && (*tag >> 3) < (1U << 29);
  if (!sound_) return std::nullopt;
  out.value = *value;
  if (out.kind != ProtoField::Kind::bytes) return out;
  sound_ = *value <= rest_.size();
  if (!sound_) return std::nullopt;
  out.bytes = rest_.substr(0, *value);
  rest_.remove_prefix(*value);
  return out;
}

void ProtoWriter::raw_varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
  text_.push_back(static_cast<char>(value));
}

ProtoWriter& ProtoWriter::varint(std::uint32_t field, std::uint64_t value) {
  raw_varint(std::uint64_t{field} << 3);
  raw_varint(value);
  return *this;
}

ProtoWriter& ProtoWriter::f32(std::uint32_t field, float value) {
  raw_varint(std::uint64_t{field} << 3 | 5);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  for (int i = 0; i < 4; ++i) text_.push_back(static_cast<char>(bits >> (8 * i) & 0xff));
  return *this;
}

ProtoWriter& ProtoWriter::bytes(std::uint32_t field, std::string_view value) {
  raw_varint(std::uint64_t{field} << 3 | 2);
  raw_varint(value.size());
  text_ += value;
  return *this;
}

}  // namespace dlrun::runtime
