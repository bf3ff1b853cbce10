// See tokenizer.hpp. The tokens of a word are a list in which pairs are merged; a heap has the pairs that can
// be, so that also a word of a million bytes takes no more than n log n.
#include <queue>

#include "runtime/data/text/split_words.hpp"
#include "runtime/data/text/tokenizer.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kMaxKnown = std::size_t{1} << 18, kMaxKnownBytes = 32;  // of the words remembered
constexpr std::size_t kEnd = SIZE_MAX;

struct Symbol {
  std::uint32_t token;
  std::size_t before, next;  // kEnd at the ends
  bool is_merged = false;    // into the one before it
};

struct Candidate {
  std::uint32_t rank;
  std::size_t at;  // the left symbol
  std::uint32_t left, right, token;
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

}  // namespace

Tokenizer::Tokens WordEncoder::merged(std::string_view word) const {
  std::vector<Symbol> symbols(word.size());
  for (std::size_t i = 0; i < word.size(); ++i)
    symbols[i] = {tokenizer_.bytes_[static_cast<unsigned char>(word[i])], i == 0 ? kEnd : i - 1,
                  i + 1 < word.size() ? i + 1 : kEnd};
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](std::size_t at) {
    if (at == kEnd || symbols[at].next == kEnd) return;
    const std::uint32_t left = symbols[at].token, right = symbols[symbols[at].next].token;
    const auto found = tokenizer_.merges_.find(std::uint64_t{left} << 32 | right);
    if (found != tokenizer_.merges_.end())
      candidates.push({found->second.rank, at, left, right, found->second.token});
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = symbols[best.at];
    if (left.is_merged || left.token != best.left || left.next == kEnd) continue;
    Symbol& right = symbols[left.next];
    if (right.token != best.right) continue;
    left.token = best.token;
    right.is_merged = true;
    left.next = right.next;
    if (left.next != kEnd) symbols[left.next].before = best.at;
    consider(left.before);
    consider(best.at);
  }
  Tokenizer::Tokens out;
  for (std::size_t i = 0; i != kEnd; i = symbols[i].next) out.push_back(symbols[i].token);
  return out;
}

void WordEncoder::add_word(std::string_view word, Tokenizer::Tokens& out) {
  if (word.size() > kMaxKnownBytes) {
    const Tokenizer::Tokens tokens = merged(word);
    out.insert(out.end(), tokens.begin(), tokens.end());
    return;
  }
  if (known_.size() > kMaxKnown) known_.clear();
  auto [found, is_new] = known_.try_emplace(std::string(word));
  if (is_new) found->second = merged(word);
  out.insert(out.end(), found->second.begin(), found->second.end());
}

void WordEncoder::add(std::string_view text, Tokenizer::Tokens& out) {
  if (!tokenizer_.has_merges()) {  // each byte by itself, whatever the words
    for (const char c : text) out.push_back(tokenizer_.bytes_[static_cast<unsigned char>(c)]);
    return;
  }
  while (!text.empty()) {
    const std::size_t length = first_word(text);
    add_word(text.substr(0, length), out);
    text.remove_prefix(length);
  }
}

}  // namespace dlrun::runtime
