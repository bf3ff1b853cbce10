// See split_words.hpp.
#include "runtime/data/text/split_words.hpp"

#include <algorithm>
#include <array>

#include "runtime/data/text/unicode_classes.hpp"

namespace dlrun::runtime {
namespace {

// 's, 't, 're, ...; 0 where the text does not begin with one.
std::size_t contraction(std::string_view text) {
  constexpr std::array<std::string_view, 7> kEndings = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
  for (const std::string_view ending : kEndings)
    if (text.starts_with(ending)) return ending.size();
  return 0;
}

// The bytes of the codes of one class that the text begins with.
std::size_t run_of(std::string_view text, CodeClass kind) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ClassedCode next = first_class(text.substr(at));
    if (next.kind != kind) break;
    at += next.bytes;
  }
  return at;
}

// All of the white space at the end of the text, and all but its last code before something else: that one
// belongs to what follows, or is alone.
std::size_t white_space(std::string_view text) {
  std::size_t at = 0, last = 0;
  while (at < text.size()) {
    const ClassedCode next = first_class(text.substr(at));
    if (next.kind != CodeClass::space) return last == 0 ? at : last;
    last = at;
    at += next.bytes;
  }
  return at;
}

// The last code of a text that is not empty: a byte that ends no code of UTF-8 is a code of its own.
ClassedCode last_class(std::string_view text) {
  for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(4, text.size()); ++bytes) {
    const std::string_view last = text.substr(text.size() - bytes);
    const auto decoded = decode_utf8(last);
    if (decoded && decoded->bytes == bytes) return first_class(last);
  }
  return {CodeClass::other, 1};
}

// Whether the text ends in one code of white space that is a word of its own before anything else: a blank
// belongs to what follows, and of several codes the last one does.
bool ends_in_lone_space(std::string_view text) {
  const std::string_view before = text.substr(0, text.size() - last_class(text).bytes);
  return !text.ends_with(' ') && !before.empty() && last_class(before).kind != CodeClass::space;
}

}  // namespace

std::size_t first_word(std::string_view text) {
  if (const std::size_t ending = contraction(text); ending > 0) return ending;
  const std::size_t blank = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const ClassedCode first = first_class(text.substr(blank));
  if (first.kind == CodeClass::space) return white_space(text);
  return blank + run_of(text.substr(blank), first.kind);
}

bool may_cut(std::string_view text, std::size_t at) {
  if (at == 0 || at >= text.size()) return false;
  const std::string_view before = text.substr(0, at);
  const CodeClass left = last_class(before).kind, right = first_class(text.substr(at)).kind;
  if (right == CodeClass::space) return left != CodeClass::space;
  if (left == CodeClass::space) return ends_in_lone_space(before);
  return left != right && !before.ends_with('\'');  // "it's" is two words, of which one is "'s"
}

}  // namespace dlrun::runtime
