// Protocol buffers as they are encoded, as far as files of others need them: fields one after another, each a
// number and a varint, 4 or 8 bytes, or a length and bytes. No schema: who reads knows the numbers. Nothing
// is trusted: a field that does not fit its message ends the reading with an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::runtime {

struct ProtoField {
  enum class Kind { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  std::uint32_t number = 0;
  Kind kind = Kind::varint;
  std::uint64_t value = 0;  // of varint and fixed kinds
  std::string_view bytes;   // of bytes, within the message
};

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}
  /// The next field; unset at the end, and where the message is not sound.
  std::optional<ProtoField> next();
  /// A number of a packed field.
  std::optional<std::uint64_t> varint();
  bool at_end() const { return rest_.empty(); }
  bool is_sound() const { return sound_; }

 private:
  std::optional<std::uint64_t> fixed(std::size_t size);
  std::string_view rest_;
  bool sound_ = true;
};

/// Builds a message field by field.
class ProtoWriter {
 public:
  ProtoWriter& varint(std::uint32_t field, std::uint64_t value);
  ProtoWriter& f32(std::uint32_t field, float value);
  ProtoWriter& bytes(std::uint32_t field, std::string_view value);
  ProtoWriter& message(std::uint32_t field, const ProtoWriter& value) { return bytes(field, value.text_); }
  const std::string& text() const { return text_; }

 private:
  void raw_varint(std::uint64_t value);
  std::string text_;
};

}  // namespace dlrun::runtime
