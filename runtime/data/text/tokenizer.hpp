// Tokenizer: a text as numbers, and back, by byte pairs (Sennrich, Haddow, Birch 2016) over bytes, as GPT-2
// has them: a word begins as its bytes, and the pair that was merged first in the list of merges is merged
// first. Without merges each byte is a token. Any bytes can be encoded, and decoding gives them back.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class Tokenizer {
 public:
  using Tokens = std::vector<std::uint32_t>;

  /// 256 bytes, and the end of a text.
  static Tokenizer of_bytes();
  /// A folder with GPT-2's files: vocab.json and merges.txt.
  static Result<Tokenizer> open(const std::filesystem::path& folder);
  /// The text of tokenizer.json, as to_text() wrote it.
  static Result<Tokenizer> parse(std::string_view text, const std::string& name);
  std::string to_text() const;

  std::uint64_t vocabulary() const { return words_.size(); }
  /// The token that stands between texts; empty where the vocabulary has none.
  std::optional<std::uint32_t> end_of_text() const { return end_of_text_; }
  bool has_merges() const { return !merges_.empty(); }

  Tokens encode(std::string_view text) const;
  /// The bytes of the tokens; of one that the vocabulary does not have, nothing.
  std::string decode(std::span<const std::uint32_t> tokens) const;

 private:
  friend class WordEncoder;
  struct Merge {
    std::uint32_t rank, token;
  };
  struct Parts;
  static Result<Tokenizer> make(const Parts& parts);
  Result<void> add_words(const Parts& parts);
  Result<void> add_merge(const std::string& line, const std::string& where, std::uint32_t rank,
                         const std::unordered_map<std::string, std::uint32_t>& known);

  std::vector<std::string> words_;  // the bytes of each token
  std::array<std::uint32_t, 256> bytes_{};
  std::unordered_map<std::uint64_t, Merge> merges_;  // of two tokens, the left one in the high half
  std::vector<std::string> merge_lines_;             // as merges.txt has them
  std::optional<std::uint32_t> end_of_text_;
};

/// Encodes many words, and remembers the usual ones. Each thread has its own.
class WordEncoder {
 public:
  explicit WordEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  /// Appends the tokens of a text.
  void add(std::string_view text, Tokenizer::Tokens& out);

 private:
  void add_word(std::string_view word, Tokenizer::Tokens& out);
  Tokenizer::Tokens merged(std::string_view word) const;

  const Tokenizer& tokenizer_;
  std::unordered_map<std::string, Tokenizer::Tokens> known_;
};

}  // namespace dlrun::runtime
