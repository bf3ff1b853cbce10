#include "src/base/split_words.hpp"

#include "src/base/quote.hpp"

namespace dlrun {
namespace {

// Outside of quotes, and within double quotes, a shell does something with these.
constexpr std::string_view kShellOutside = "$`|&;<>()*?[]{}\n", kShellInside = "$`";

bool is_in(std::string_view set, char c) {
  return set.find(c) != std::string_view::npos;
}

Result<void> needs_shell(char c) {
  const std::string what = c == '\n' ? "a line break" : fmt::format("'{}'", c);
  return fail(Error{.kind = ErrorKind::input,
                    .what = what + " is for a shell, and no shell reads the command",
                    .hint = "put it in single quotes, or write the command as [bash, -c, 'TEXT']"});
}

class WordReader {
 public:
  explicit WordReader(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> read() {
    for (; at_ < text_.size(); ++at_) TRY(take(text_[at_]));
    if (quote_ != 0)
      return fail(Error{.kind = ErrorKind::input, .what = fmt::format("a {} is not closed", quote_)});
    TRY(end_word());
    return std::move(words_);
  }

 private:
  Result<void> take(char c) {
    if (quote_ == '\'') return c == quote_ ? close() : add(c);
    if (c == '\\') return escaped();
    if (quote_ == '"') return c == quote_ ? close() : is_in(kShellInside, c) ? needs_shell(c) : add(c);
    if (c == '\'' || c == '"') return open(c);
    if (c == ' ' || c == '\t') return end_word();
    const bool starts = (c == '~' || c == '#') && !in_word_;
    return starts || is_in(kShellOutside, c) ? needs_shell(c) : add(c);
  }

  // Within double quotes a backslash quotes only what has a meaning there.
  Result<void> escaped() {
    if (at_ + 1 == text_.size())
      return fail(Error{.kind = ErrorKind::input, .what = "the command ends with a backslash"});
    const char next = text_[at_ + 1];
    if (next == '\n') return needs_shell(next);
    if (quote_ == '"' && next != '"' && next != '\\' && next != '$' && next != '`') return add('\\');
    ++at_;
    return add(next);
  }

  Result<void> add(char c) {
    word_ += c, in_word_ = true;
    return {};
  }
  Result<void> open(char c) {
    quote_ = c, in_word_ = true;
    return {};
  }
  Result<void> close() {
    quote_ = 0;
    return {};
  }
  Result<void> end_word() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear(), in_word_ = false;
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  char quote_ = 0;
  bool in_word_ = false;
  std::string word_;
  std::vector<std::string> words_;
};

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  auto words = TRY(WordReader(text).read());
  const std::string first = words.empty() ? std::string() : words.front();
  const std::size_t equals = first.find('=');
  if (equals != std::string::npos && is_shell_identifier(std::string_view(first).substr(0, equals)))
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("'{}' sets a variable, and no shell reads the command", first),
                      .hint = "put it into environment.set"});
  return words;
}

}  // namespace dlrun
