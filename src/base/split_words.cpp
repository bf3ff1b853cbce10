#include "src/base/split_words.hpp"

#include "src/base/quote.hpp"

namespace dlrun {
namespace {

// Outside of quotes, and within double quotes, a shell does something with these.
constexpr std::string_view kShellOutside = "$`|&;<>()*?[]{}\n", kShellInside = "$`";

// $NAME or ${NAME}, which dlrun expands itself; not $(command), $1 or ${NAME:-default}.
bool is_variable(std::string_view text) {
  const std::size_t braces = text.substr(1).starts_with('{') ? 1 : 0;
  const std::string_view name = text.substr(1 + braces);
  std::size_t length = 0;
  while (length < name.size() && is_shell_identifier(name.substr(0, length + 1))) ++length;
  return length > 0 && (braces == 0 || name.substr(length).starts_with('}'));
}

bool is_in(std::string_view set, char c) {
  return set.find(c) != std::string_view::npos;
}

Result<void> needs_shell(char c) {
  const std::string what = c == '\n' ? "a line break" : fmt::format("'{}'", c);
  return fail(Error{.kind = ErrorKind::input,
                    .what = what + " needs a shell, and no shell reads the command",
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
    if (quote_ == '\'') return c == quote_ ? close() : add_quoted(c);
    if (c == '\\') return escaped();
    if (text_.substr(at_).starts_with("$$")) return ++at_, add_quoted(c);
    if (c == '$' && is_variable(text_.substr(at_))) return add_variable();
    if (quote_ == '"') return c == quote_ ? close() : is_in(kShellInside, c) ? needs_shell(c) : add(c);
    if (c == '\'' || c == '"') return open(c);
    if (c == ' ' || c == '\t') return end_word();
    const bool home = c == '~' && (at_ + 1 == text_.size() || is_in("/ \t", text_[at_ + 1]));
    const bool starts = ((c == '~' && !home) || c == '#') && !in_word_;
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
    return add_quoted(next);
  }

  // As it stands, for the caller to expand. Braces would be refused by themselves.
  Result<void> add_variable() {
    const bool braces = text_[at_ + 1] == '{';
    const std::size_t last = braces ? text_.find('}', at_) : at_;
    for (; at_ < last; ++at_) TRY(add(text_[at_]));
    return add(text_[at_]);
  }
  // A dollar sign that is quoted stays one.
  Result<void> add_quoted(char c) {
    if (c == '$') TRY(add(c));
    return add(c);
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
  while (text.ends_with('\n')) text.remove_suffix(1);  // YAML's > and | leave one
  auto words = TRY(WordReader(text).read());
  const std::string first = words.empty() ? std::string() : words.front();
  const std::size_t equals = first.find('=');
  if (equals != std::string::npos && is_shell_identifier(std::string_view(first).substr(0, equals)))
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format(
                          "'{}' sets a variable, which needs a shell, and no shell reads the command", first),
                      .hint = "set it in environment.set"});
  return words;
}

}  // namespace dlrun
