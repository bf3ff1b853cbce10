// See token_file.hpp.
#include "runtime/data/tokens/token_file.hpp"

#include <string_view>

#include "runtime/base/checksum.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::string_view kMagic = "dlruntok";
constexpr std::uint32_t kVersion1 = 1;

std::uint64_t little_endian(std::span<const std::byte> bytes, std::size_t offset, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + i]);
  return value;
}

void append(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// Of a header that is there in whole.
Result<TokenHeader> fields_of(std::span<const std::byte> head, const std::string& name) {
  if (const auto version = little_endian(head, 8, 4); version != kVersion1)
    return bad_input(name, fmt::format("is a token file of version {} (offset 8); this dlrun reads {}",
                                       version, kVersion1));
  TokenHeader out{.width = static_cast<std::uint32_t>(little_endian(head, 12, 4)),
                  .count = little_endian(head, 16, 8),
                  .vocabulary = little_endian(head, 24, 8),
                  .tokenizer = little_endian(head, 32, 8),
                  .checksum = little_endian(head, 40, 8)};
  if (out.width != 2 && out.width != 4)
    return bad_input(name, fmt::format("has {} bytes per token (offset 12); expected 2 or 4", out.width));
  if (out.vocabulary < 2 || out.vocabulary > kMaxVocabulary)
    return bad_input(name, fmt::format("has a vocabulary of {} (offset 24), out of range [2, {}]",
                                       out.vocabulary, kMaxVocabulary));
  return out;
}

}  // namespace

std::uint32_t token_width(std::uint64_t vocabulary) {
  return vocabulary <= 65536 ? 2 : 4;
}

Result<TokenHeader> parse_token_header(std::span<const std::byte> head, std::uint64_t file_bytes,
                                       const std::string& name) {
  const std::string_view magic(reinterpret_cast<const char*>(head.data()),
                               std::min(head.size(), kMagic.size()));
  if (magic != kMagic.substr(0, magic.size()))
    return bad_input(name, fmt::format("is no token file: the bytes at offset 0 are not '{}'", kMagic),
                     "write token files with dlrun-train --prepare --tokens");
  if (head.size() < kTokenHeaderBytes)
    return bad_input(name, fmt::format("ends at offset {}, within the header of {} bytes", head.size(),
                                       kTokenHeaderBytes));
  const TokenHeader out = TRY(fields_of(head, name));
  const std::uint64_t there = (file_bytes - kTokenHeaderBytes) / out.width;
  if (out.count > there || out.file_bytes() != file_bytes)
    return bad_input(name,
                     fmt::format("the header has {} tokens of {} bytes (offset 16), and the file ends at "
                                 "offset {}, {} {} tokens",
                                 out.count, out.width, file_bytes, out.count > there ? "after" : "beyond",
                                 out.count > there ? there : out.count),
                     out.count > there ? "copy it again: it is truncated" : "");
  return out;
}

std::string token_file(std::span<const std::uint32_t> tokens, std::uint64_t vocabulary,
                       std::uint64_t tokenizer) {
  const std::uint32_t width = token_width(vocabulary);
  std::string out(kMagic);
  out.reserve(kTokenHeaderBytes + tokens.size() * width);
  std::string numbers;
  numbers.reserve(tokens.size() * width);
  for (const std::uint32_t token : tokens) append(numbers, token, width);
  append(out, kVersion1, 4);
  append(out, width, 4);
  for (const std::uint64_t value :
       {std::uint64_t{tokens.size()}, vocabulary, tokenizer, checksum(std::string_view(numbers))})
    append(out, value, 8);
  out.resize(kTokenHeaderBytes, '\0');
  return out += numbers;
}

}  // namespace dlrun::runtime
