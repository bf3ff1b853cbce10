// A token file: a header of 64 bytes and the numbers of the tokens behind it, of 16 or 32 bits,
// little-endian.
//
//   offset  bytes
//        0      8  "dlruntok"
//        8      4  version, 1
//       12      4  bytes per token, 2 or 4
//       16      8  number of tokens
//       24      8  size of the vocabulary: tokens lie in [0, size)
//       32      8  XXH3 of the tokenizer's file; 0 where there is none
//       40      8  XXH3 of the bytes behind the header
//       48     16  zero
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "src/base/result.hpp"

namespace dlrun::runtime {

inline constexpr std::size_t kTokenHeaderBytes = 64;
inline constexpr std::uint64_t kMaxVocabulary = std::uint64_t{1} << 24;

struct TokenHeader {
  std::uint32_t width = 2;  // bytes per token
  std::uint64_t count = 0, vocabulary = 0, tokenizer = 0, checksum = 0;

  std::uint64_t file_bytes() const { return kTokenHeaderBytes + count * width; }
};

/// The bytes per token that a vocabulary needs.
std::uint32_t token_width(std::uint64_t vocabulary);

/// The header of a file called `name` that has so many bytes, of which `head` are the first.
Result<TokenHeader> parse_token_header(std::span<const std::byte> head, std::uint64_t file_bytes,
                                       const std::string& name);

/// The content of a token file. `tokenizer`: the checksum of the tokenizer's file.
std::string token_file(std::span<const std::uint32_t> tokens, std::uint64_t vocabulary,
                       std::uint64_t tokenizer);

}  // namespace dlrun::runtime
