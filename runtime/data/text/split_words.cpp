// See split_words.hpp.
#include "runtime/data/text/split_words.hpp"

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

bool is_plain(char c) {
  return c > ' ' && c < '\x7f';
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
  return at >= 2 && at < text.size() && text[at - 1] == '\n' && is_plain(text[at - 2]) && is_plain(text[at]);
}

}  // namespace dlrun::runtime
