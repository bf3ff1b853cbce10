// See tokenizer.hpp.
#include "runtime/data/text/tokenizer.hpp"

#include <algorithm>

#include "runtime/data/text/byte_alphabet.hpp"
#include "runtime/data/text/split_words.hpp"
#include "runtime/data/tokens/token_file.hpp"
#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::string_view kSchema = "dlrun.tokenizer/1";
constexpr std::array kEndsOfText = {"<|endoftext|>", "<|end_of_text|>", "</s>"};
constexpr std::uint32_t kNone = UINT32_MAX;

std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

}  // namespace

// What both forms of a vocabulary have.
struct Tokenizer::Parts {
  Json vocabulary;
  std::string vocabulary_name, merges_name;
  std::vector<std::string> merges;
  std::size_t first_line = 1;  // of the merges, for what is said of them
};

Tokenizer Tokenizer::of_bytes() {
  Tokenizer out;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    out.words_.emplace_back(1, static_cast<char>(byte));
    out.bytes_[byte] = byte;
  }
  out.words_.emplace_back(kEndsOfText[0]);
  out.end_of_text_ = 256;
  return out;
}

Result<void> Tokenizer::add_words(const Parts& parts) {
  const std::string& where = parts.vocabulary_name;
  if (!parts.vocabulary.is_object()) return bad_input(where, "is no JSON object of tokens and their numbers");
  std::fill(bytes_.begin(), bytes_.end(), kNone);
  for (const auto& [text, number] : parts.vocabulary.items()) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() >= kMaxVocabulary)
      return bad_input(where, fmt::format("the number of token {} is not in [0, {}]", short_text(text),
                                          kMaxVocabulary - 1));
    const auto id = number.get<std::uint32_t>();
    const auto bytes = bytes_of_alphabet(text);
    if (!bytes || bytes->empty())
      return bad_input(where, fmt::format("token {} has characters that stand for no byte", id),
                       "only vocabularies of bytes, as GPT-2's, are supported");
    if (id >= words_.size()) words_.resize(id + 1);
    if (!words_[id].empty()) return bad_input(where, fmt::format("two tokens have the number {}", id));
    words_[id] = *bytes;
    if (bytes->size() == 1) bytes_[static_cast<unsigned char>((*bytes)[0])] = id;
    if (std::find(kEndsOfText.begin(), kEndsOfText.end(), text) != kEndsOfText.end()) end_of_text_ = id;
  }
  const auto missing = std::find(bytes_.begin(), bytes_.end(), kNone);
  if (missing == bytes_.end()) return {};
  return bad_input(where, fmt::format("has no token for the byte {}", missing - bytes_.begin()),
                   "only vocabularies of bytes, as GPT-2's, are supported");
}

// "left right"
Result<void> Tokenizer::add_merge(const std::string& line, const std::string& where, std::uint32_t rank,
                                  const std::unordered_map<std::string, std::uint32_t>& known) {
  const std::vector<std::string> sides = split(line, ' ');
  if (sides.size() != 2) return bad_input(where, fmt::format("{} is not two tokens", short_text(line)));
  std::array<std::uint32_t, 3> ids{};
  const std::array<std::string, 3> texts = {sides[0], sides[1], sides[0] + sides[1]};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto bytes = bytes_of_alphabet(texts[i]);
    const auto found = bytes ? known.find(*bytes) : known.end();
    if (found == known.end())
      return bad_input(where, fmt::format("{} is not in the vocabulary", short_text(texts[i])));
    ids[i] = found->second;
  }
  merges_.try_emplace(pair_of(ids[0], ids[1]), Merge{rank, ids[2]});
  merge_lines_.push_back(line);
  return {};
}

Result<Tokenizer> Tokenizer::make(const Parts& parts) {
  Tokenizer out;
  TRY(out.add_words(parts));
  std::unordered_map<std::string, std::uint32_t> known;
  for (std::uint32_t id = 0; id < out.words_.size(); ++id) known.try_emplace(out.words_[id], id);
  for (std::size_t i = 0; i < parts.merges.size(); ++i)
    TRY(out.add_merge(parts.merges[i], fmt::format("{}:{}", parts.merges_name, parts.first_line + i),
                      static_cast<std::uint32_t>(i), known));
  return out;
}

Result<Tokenizer> Tokenizer::open(const std::filesystem::path& folder) {
  const std::filesystem::path words = folder / "vocab.json", merges = folder / "merges.txt";
  Parts parts{.vocabulary = TRY(parse_json(TRY(read_regular_file(words)), words.string())),
              .vocabulary_name = words.string(),
              .merges_name = merges.string(),
              .merges = split(TRY(read_regular_file(merges)), '\n')};
  if (!parts.merges.empty() && parts.merges.back().empty()) parts.merges.pop_back();
  if (!parts.merges.empty() && parts.merges.front().starts_with("#version")) {
    parts.merges.erase(parts.merges.begin());
    parts.first_line = 2;
  }
  for (std::string& line : parts.merges)
    if (line.ends_with('\r')) line.pop_back();
  return make(parts);
}

Result<Tokenizer> Tokenizer::parse(std::string_view text, const std::string& name) {
  const Json json = TRY(parse_json(text, name));
  if (TRY(field<std::string>(json, "schema", name)) != kSchema)
    return bad_input(name, fmt::format("is not of schema {}", kSchema));
  return make({.vocabulary = TRY(field<Json>(json, "vocabulary", name)),
               .vocabulary_name = name,
               .merges_name = name + ": merges",
               .merges = TRY(field<std::vector<std::string>>(json, "merges", name))});
}

std::string Tokenizer::to_text() const {
  Json vocabulary = Json::object();
  for (std::size_t id = 0; id < words_.size(); ++id)
    if (!words_[id].empty()) vocabulary[alphabet_of_bytes(words_[id])] = id;
  return to_pretty_text(Json{{"schema", kSchema}, {"vocabulary", vocabulary}, {"merges", merge_lines_}});
}

Tokenizer::Tokens Tokenizer::encode(std::string_view text) const {
  Tokens out;
  WordEncoder(*this).add(text, out);
  return out;
}

std::string Tokenizer::decode(std::span<const std::uint32_t> tokens) const {
  std::string out;
  for (const std::uint32_t token : tokens)
    if (token < words_.size()) out += words_[token];
  return out;
}

}  // namespace dlrun::runtime
