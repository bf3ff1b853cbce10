// See token_stream.hpp.
#include "runtime/data/tokens/token_stream.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/base/checksum.hpp"
#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {
namespace {

// The highest of the numbers, which are copied to `out`; they lie at any address.
template <class Number>
std::uint32_t widen(const std::byte* from, std::span<std::int32_t> out) {
  std::uint32_t highest = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    Number number;
    std::memcpy(&number, from + i * sizeof number, sizeof number);
    highest = std::max(highest, std::uint32_t{number});
    out[i] = static_cast<std::int32_t>(number);
  }
  return highest;
}

}  // namespace

std::span<const std::byte> TokenStream::Piece::numbers() const {
  const std::span<const std::byte> all =
      file ? file->bytes() : std::as_bytes(std::span(memory->data(), memory->size()));
  return all.subspan(kTokenHeaderBytes);
}

Result<TokenStream::Piece> TokenStream::open_piece(const std::filesystem::path& file) {
  auto mapped = std::make_shared<const MappedFile>(TRY(MappedFile::open(file)));
  const std::span<const std::byte> all = mapped->bytes();
  const TokenHeader header =
      TRY(parse_token_header(all.first(std::min(all.size(), kTokenHeaderBytes)), all.size(), mapped->name()));
  const std::string name = mapped->name();
  return Piece{.name = name, .file = std::move(mapped), .memory = nullptr, .header = header, .first = 0};
}

Result<void> TokenStream::add(Piece piece) {
  if (pieces_.empty()) {
    vocabulary_ = piece.header.vocabulary;
    tokenizer_ = piece.header.tokenizer;
  }
  if (piece.header.vocabulary != vocabulary_)
    return bad_input(piece.name, fmt::format("has a vocabulary of {} tokens (offset 24), and {} has {}",
                                             piece.header.vocabulary, name(), vocabulary_));
  if (piece.header.tokenizer != tokenizer_)
    return bad_input(piece.name,
                     fmt::format("was written with another tokenizer (offset 32) than {}", name()));
  piece.first = count_;
  count_ += piece.header.count;
  pieces_.push_back(std::move(piece));
  return {};
}

Result<TokenStream> TokenStream::open(const std::vector<std::filesystem::path>& files) {
  TokenStream out;
  for (const std::filesystem::path& file : files) TRY(out.add(TRY(open_piece(file))));
  return out;
}

TokenStream TokenStream::of(const std::vector<std::uint32_t>& tokens, std::uint64_t vocabulary) {
  auto content = std::make_shared<const std::string>(token_file(tokens, vocabulary, 0));
  TokenStream out;
  out.count_ = tokens.size();
  out.vocabulary_ = vocabulary;
  out.pieces_.push_back({.name = "synthetic tokens",
                         .file = nullptr,
                         .memory = std::move(content),
                         .header = {.width = token_width(vocabulary),
                                    .count = tokens.size(),
                                    .vocabulary = vocabulary,
                                    .tokenizer = 0,
                                    .checksum = 0},
                         .first = 0});
  out.pieces_[0].header.checksum = checksum(out.pieces_[0].numbers());
  return out;
}

std::uint64_t TokenStream::bytes() const {
  std::uint64_t out = 0;
  for (const Piece& piece : pieces_) out += piece.header.file_bytes();
  return out;
}

std::uint64_t TokenStream::fingerprint() const {
  std::uint64_t hash = mix(vocabulary_, tokenizer_);
  for (const Piece& piece : pieces_) hash = mix(hash, piece.header.count, piece.header.checksum);
  return hash;
}

const TokenStream::Piece& TokenStream::piece_of(std::uint64_t token) const {
  const auto behind = std::upper_bound(pieces_.begin(), pieces_.end(), token,
                                       [](std::uint64_t at, const Piece& piece) { return at < piece.first; });
  return *std::prev(behind);
}

Result<void> TokenStream::read_piece(const Piece& piece, std::uint64_t begin,
                                     std::span<std::int32_t> out) const {
  const std::byte* from = piece.numbers().data() + begin * piece.header.width;
  const std::uint32_t highest =
      piece.header.width == 2 ? widen<std::uint16_t>(from, out) : widen<std::uint32_t>(from, out);
  if (highest < vocabulary_) return {};
  const auto beyond = std::find_if(out.begin(), out.end(), [this](std::int32_t token) {
    return static_cast<std::uint32_t>(token) >= vocabulary_;
  });
  const auto offset = begin + static_cast<std::uint64_t>(beyond - out.begin());
  return bad_input(piece.name, fmt::format("token {} at offset {} is out of range: the vocabulary has {}",
                                           static_cast<std::uint32_t>(*beyond),
                                           kTokenHeaderBytes + offset * piece.header.width, vocabulary_));
}

Result<void> TokenStream::read(std::uint64_t first, std::span<std::int32_t> out) const {
  while (!out.empty()) {
    const Piece& piece = piece_of(first);
    const std::uint64_t begin = first - piece.first;
    const auto some =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), piece.header.count - begin));
    TRY(read_piece(piece, begin, out.first(some)));
    first += some;
    out = out.subspan(some);
  }
  return {};
}

Result<void> TokenStream::verify() const {
  std::vector<std::int32_t> some(std::size_t{1} << 16);
  for (const Piece& piece : pieces_) {
    for (std::uint64_t at = 0; at < piece.header.count; at += some.size())
      TRY(read_piece(piece, at,
                     std::span(some).first(static_cast<std::size_t>(
                         std::min<std::uint64_t>(some.size(), piece.header.count - at)))));
    if (checksum(piece.numbers()) != piece.header.checksum)
      return bad_input(piece.name, "was changed after it was written: its checksum differs",
                       "write it again: dlrun-train --prepare --tokens");
  }
  return {};
}

}  // namespace dlrun::runtime
