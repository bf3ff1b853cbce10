// TokenStream: the tokens of one part of a data set, file behind file, as if they were one. The files are
// mapped and never copied: what a window needs is read when it is asked for.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "runtime/base/mapped_file.hpp"
#include "runtime/data/tokens/token_file.hpp"

namespace dlrun::runtime {

class TokenStream {
 public:
  /// Opens and maps files and compares their headers: one vocabulary, one tokenizer. At least one file.
  static Result<TokenStream> open(const std::vector<std::filesystem::path>& files);
  /// Of tokens in memory, all below `vocabulary`.
  static TokenStream of(const std::vector<std::uint32_t>& tokens, std::uint64_t vocabulary);

  std::uint64_t count() const { return count_; }
  std::uint64_t vocabulary() const { return vocabulary_; }
  /// The checksum of the tokenizer's file; 0 where there is none.
  std::uint64_t tokenizer() const { return tokenizer_; }
  /// The first file, for what is said of all.
  const std::string& name() const { return pieces_.front().name; }
  std::uint64_t bytes() const;
  std::uint64_t fingerprint() const;

  /// Tokens `first` to `first + out.size() - 1`. An Error names the file and the offset of a token beyond the
  /// vocabulary; `out` holds it then, and is not to be used.
  Result<void> read(std::uint64_t first, std::span<std::int32_t> out) const;
  /// Reads all of it: every token, and the checksum of every file.
  Result<void> verify() const;

 private:
  struct Piece {
    std::string name;
    std::shared_ptr<const MappedFile> file;     // that the bytes lie in
    std::shared_ptr<const std::string> memory;  // or this
    TokenHeader header;
    std::uint64_t first = 0;  // of the stream's tokens

    std::span<const std::byte> numbers() const;
  };
  static Result<Piece> open_piece(const std::filesystem::path& file);
  Result<void> add(Piece piece);
  Result<void> read_piece(const Piece& piece, std::uint64_t begin, std::span<std::int32_t> out) const;
  const Piece& piece_of(std::uint64_t token) const;

  std::vector<Piece> pieces_;
  std::uint64_t count_ = 0, vocabulary_ = 0, tokenizer_ = 0;
};

}  // namespace dlrun::runtime
