#include "src/bench/rate_syntax.hpp"

#include <algorithm>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::bench {
namespace {

// Repetitions are copied when the expression is compiled, nested ones multiply.
constexpr std::size_t kMaxExpression = 1000;
constexpr std::int64_t kMaxRepetition = 1000;

tl::unexpected<Error> refused(std::string what) {
  return fail(Error{.kind = ErrorKind::input, .what = std::move(what), .where = {}, .hint = {}, .also = {}});
}

class Translator {
 public:
  explicit Translator(std::string_view rest) : rest_(rest) {}

  Result<PosixExpression> run() {
    if (rest_.size() > kMaxExpression)
      return refused(fmt::format("it is longer than {} characters", kMaxExpression));
    if (rest_.find('\0') != std::string_view::npos) return refused("it has a NUL");
    while (!rest_.empty()) TRY(item());
    return out_;
  }

 private:
  char take() {
    const char out = rest_.front();
    rest_.remove_prefix(1);
    return out;
  }

  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  Result<void> item() {
    const char at = take();
    if (at == '\\') return escape();
    if (at == '[') return bracket();
    if (at == '(') return group();
    out_.text += at;
    if (at == '{') TRY(repetition());
    const bool repeats = at == '*' || at == '+' || at == '?' || at == '{';
    if (repeats && rest_.starts_with('?'))
      return refused("lazy repetition, as in '.*?', is not supported; say what may be there: '[^ ]*'");
    if (repeats && rest_.starts_with('+')) return refused("possessive repetition is not supported");
    return {};
  }

  Result<void> group() {
    ++groups_;
    out_.text += '(';
    if (skip("?:")) return {};
    if (rest_.starts_with('?')) return refused("of the groups with (? only (?:...) is supported");
    if (out_.group == 0) out_.group = groups_;
    return {};
  }

  // Behind '{'.
  Result<void> repetition() {
    const std::size_t end = rest_.find('}');
    if (end == std::string_view::npos) return refused("'{' has no '}'");
    const std::string inside(rest_.substr(0, end));
    std::int64_t largest = 1;
    for (const std::string& bound : split(inside, ',')) {
      if (bound.empty()) continue;
      const auto count = parse_integer(bound, 0, kMaxRepetition);
      if (!count) return refused(fmt::format("{{{}}}: {}", inside, count.error().what));
      largest = std::max(largest, *count);
    }
    copies_ *= largest;
    if (copies_ > kMaxRepetition)
      return refused(fmt::format("its repetitions come to more than {}", kMaxRepetition));
    out_.text += inside + '}';
    rest_.remove_prefix(end + 1);
    return {};
  }

  Result<void> escape() {
    if (rest_.empty()) return refused("it ends in a backslash");
    const char at = take();
    static constexpr std::string_view kKnown = "wWsSbB", kSpecial = ".[]{}()*+?^$|\\";
    if (at == 'd' || at == 'D') {
      out_.text += at == 'd' ? "[0-9]" : "[^0-9]";
    } else if (at == 't') {
      out_.text += '\t';
    } else if (kKnown.find(at) != std::string_view::npos || kSpecial.find(at) != std::string_view::npos) {
      out_.text += {'\\', at};
    } else if (is_letter_or_digit(at)) {
      return refused(at >= '1' && at <= '9' ? "back-references are not supported"
                                            : fmt::format("unknown escape '\\{}'", at));
    } else {
      out_.text += at;
    }
    return {};
  }

  static bool is_letter_or_digit(char at) {
    return (at >= '0' && at <= '9') || (at >= 'a' && at <= 'z') || (at >= 'A' && at <= 'Z');
  }

  // Behind '['. A backslash is a character of the list for POSIX; ']' stands first there, and '-' last.
  Result<void> bracket() {
    const bool is_complement = skip("^");
    std::string list;
    bool has_bracket = skip("]"), has_hyphen = false;
    while (!rest_.empty() && rest_.front() != ']') {
      if (rest_.starts_with("[:") || rest_.starts_with("[.") || rest_.starts_with("[=")) {
        TRY(class_of(list));
        continue;
      }
      const char at = take();
      if (at != '\\')
        list += at;
      else
        TRY(escape_in(list, has_bracket, has_hyphen));
    }
    if (rest_.empty()) return refused("'[' has no ']'");
    take();
    // Of an escaped caret, which would make the list its complement where it stands first.
    if (!is_complement && !has_bracket && list.starts_with('^')) list = list.substr(1) + "^";
    if (list == "^" && !is_complement && !has_bracket) return literal_caret(has_hyphen);
    out_.text += std::string("[") + (is_complement ? "^" : "") + (has_bracket ? "]" : "") + list +
                 (has_hyphen ? "-" : "") + "]";
    return {};
  }

  Result<void> literal_caret(bool has_hyphen) {
    out_.text += has_hyphen ? "[-^]" : "\\^";
    return {};
  }

  Result<void> class_of(std::string& list) {
    const std::string end{rest_[1], ']'};
    const std::size_t at = rest_.find(end, 2);
    if (at == std::string_view::npos) return refused("'[' has no ']'");
    list += rest_.substr(0, at + 2);
    rest_.remove_prefix(at + 2);
    return {};
  }

  Result<void> escape_in(std::string& list, bool& has_bracket, bool& has_hyphen) {
    if (rest_.empty()) return refused("it ends in a backslash");
    const char at = take();
    switch (at) {
      case 'd':
        list += "0-9";
        return {};
      case 'w':
        list += "a-zA-Z0-9_";
        return {};
      case 's':
        list += "[:space:]";
        return {};
      case 't':
        list += '\t';
        return {};
      case ']':
        has_bracket = true;
        return {};
      case '-':
        has_hyphen = true;
        return {};
      default:
        if (is_letter_or_digit(at)) return refused(fmt::format("unknown escape '\\{}' between [ and ]", at));
        list += at;
        return {};
    }
  }

  std::string_view rest_;
  PosixExpression out_;
  std::size_t groups_ = 0;
  std::int64_t copies_ = 1;
};

}  // namespace

Result<PosixExpression> posix_of(std::string_view expression) {
  return Translator(expression).run();
}

}  // namespace dlrun::bench
