// Reading host lists: one pass over the text, an element at a time, and everything about an element is
// checked before the first of its names is made. Writing them is in hostlist_compress.cpp.
#include "schedulers/hostlist/hostlist.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

#include "src/base/strings.hpp"

namespace dlrun {
namespace {

struct Range {
  std::uint64_t low, high;
  std::size_t width;
  std::uint64_t count() const { return high - low + 1; }
};

// rack[0-1]node[2-3]-ib: texts "rack", "node", "-ib" and between them two brackets.
struct Element {
  std::vector<std::string_view> texts;
  std::vector<std::vector<Range>> brackets;
  std::size_t count = 1;
};

bool may_stand_in_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '_' || c == ':';
}

std::string name_of(char c) {
  if (c == ' ' || c == '\t') return "a blank";
  if (c == '\n' || c == '\r') return "a line break";
  if (c > ' ' && c < 127) return fmt::format("'{}'", c);
  return fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
}

std::size_t digits_of(std::uint64_t number) {
  std::size_t digits = 1;
  for (; number >= 10; number /= 10) ++digits;
  return digits;
}

void append_number(std::string& out, std::uint64_t number, std::size_t width) {
  std::array<char, 20> digits{};
  const char* const end = std::to_chars(digits.begin(), digits.end(), number).ptr;
  const auto count = static_cast<std::size_t>(end - digits.data());
  if (width > count) out.append(width - count, '0');
  out.append(digits.data(), count);
}

class Reader {
 public:
  Reader(std::string_view text, std::size_t most) : text_(text), most_(most) {}

  bool at_end() const { return place_ == text_.size(); }

  // The next element and the comma behind it.
  Result<void> read(Element& out) {
    const std::size_t start = place_;
    out.texts.clear();
    out.brackets.clear();
    out.texts.push_back(TRY(literal()));
    while (!at_end() && text_[place_] == '[') {
      out.brackets.push_back(TRY(bracket()));
      out.texts.push_back(TRY(literal()));
    }
    if (place_ == start)
      return fail(error_with_caret(text_, place_, "a host name is empty", "remove the comma"));
    TRY(check_size(out, start));
    if (at_end()) return {};
    if (++place_ == text_.size())
      return fail(error_with_caret(text_, place_, "the list ends with a comma: it may have been cut",
                                   "complete the list, or remove the comma"));
    return {};
  }

  std::size_t total() const { return total_; }

 private:
  // Letters up to a bracket, a comma or the end.
  Result<std::string_view> literal() {
    const std::size_t start = place_;
    for (; !at_end() && text_[place_] != '[' && text_[place_] != ','; ++place_) {
      const char c = text_[place_];
      if (c == ']') return fail(error_with_caret(text_, place_, "']' without '['"));
      if (!may_stand_in_name(c))
        return fail(error_with_caret(
            text_, place_, name_of(c) + " is not valid in a host name",
            c == ' ' || c == '\t' || c == '\n' ? "separate hosts by commas, without blanks" : ""));
      const bool first = place_ == start && (start == 0 || text_[start - 1] == ',');
      if (first && (c == '-' || c == '.'))
        return fail(error_with_caret(text_, place_, fmt::format("a host name cannot begin with '{}'", c)));
    }
    return text_.substr(start, place_ - start);
  }

  Result<std::vector<Range>> bracket() {
    const std::size_t open = place_++;
    std::vector<Range> out;
    while (true) {
      if (at_end())
        return fail(error_with_caret(text_, open, "this bracket is not closed: the list may have been cut",
                                     "give the whole list"));
      if (text_[place_] == ']' && out.empty())
        return fail(error_with_caret(text_, place_, "the bracket is empty"));
      out.push_back(TRY(range(open)));
      if (text_[place_++] == ']') return out;
    }
  }

  // lo or lo-hi; afterwards we stand at a comma or the closing bracket.
  Result<Range> range(std::size_t open) {
    const std::size_t start = place_;
    Range out{};
    out.low = out.high = TRY(number(open));
    out.width = place_ - start;
    if (text_[place_] == '-') {
      ++place_;
      if (!at_end() && (text_[place_] == ',' || text_[place_] == ']'))
        return fail(
            error_with_caret(text_, place_, "the range has no end: it may have been cut", "write it as 1-4"));
      out.high = TRY(number(open));
    }
    if (text_[place_] != ',' && text_[place_] != ']') return fail(unexpected());
    if (out.high < out.low)
      return fail(error_with_caret(
          text_, start, fmt::format("the range {} is descending", text_.substr(start, place_ - start))));
    if (out.high - out.low >= most_) return fail(too_many(start));
    return out;
  }

  // Digits; afterwards we do not stand at the end.
  Result<std::uint64_t> number(std::size_t open) {
    const std::size_t start = place_;
    std::uint64_t out = 0;
    for (; !at_end() && is_digit(text_[place_]); ++place_) {
      const auto digit = static_cast<std::uint64_t>(text_[place_] - '0');
      if (out > (std::numeric_limits<std::uint64_t>::max() - digit) / 10)
        return fail(error_with_caret(text_, start, "the number is larger than 18446744073709551615"));
      out = out * 10 + digit;
    }
    if (at_end())
      return fail(error_with_caret(text_, open, "this bracket is not closed: the list may have been cut",
                                   "give the whole list"));
    if (place_ == start) return fail(unexpected());
    return out;
  }

  Error unexpected() const {
    const char c = text_[place_];
    if (c == '[') return error_with_caret(text_, place_, "a bracket stands inside a bracket");
    if (c == ',' || c == ']') return error_with_caret(text_, place_, "a number is missing here");
    return error_with_caret(text_, place_, fmt::format("{} is not a number", name_of(c)),
                            "a bracket holds numbers and ranges: [1-4,8]");
  }

  Error too_many(std::size_t place) const {
    return error_with_caret(text_, place,
                            fmt::format("the list has more than the maximum of {} hosts", most_));
  }

  // Both the number of names and their length, before any is made.
  Result<void> check_size(Element& element, std::size_t start) {
    std::size_t length = 0;
    for (const std::string_view text : element.texts) length += text.size();
    element.count = 1;
    for (const std::vector<Range>& ranges : element.brackets) {
      std::uint64_t values = 0;
      std::size_t widest = 0;
      for (const Range& range : ranges) {
        values += range.count();  // each at most most_, and as many as the text has letters: no overflow
        widest = std::max({widest, range.width, digits_of(range.high)});
      }
      length += widest;
      if (values > most_ || element.count > most_ / values) return fail(too_many(start));
      element.count *= values;
    }
    if (length > kMaxHostName)
      return fail(
          error_with_caret(text_, start,
                           fmt::format("a host name of {} characters is longer than the maximum of {}",
                                       length, kMaxHostName)));
    if (element.count > most_ - total_) return fail(too_many(start));
    total_ += element.count;
    return {};
  }

  std::string_view text_;
  std::size_t most_;
  std::size_t place_ = 0;
  std::size_t total_ = 0;
};

// Makes the names of one element, in Slurm's order of loops.
class Writer {
 public:
  Writer(const Element& element, std::vector<HostName>& out)
      : element_(element), numbers_(element.brackets.size()), out_(out) {}

  void write() {
    if (element_.brackets.empty())
      out_.emplace_back(std::string(element_.texts[0]));
    else
      loop(element_.brackets.size() - 1);
  }

 private:
  // Bracket `below` - 1 and those left of it, then the last one.
  void loop(std::size_t below) {
    if (below == 0) return innermost();
    for (const Range& range : element_.brackets[below - 1])
      for (std::uint64_t i = 0; i < range.count(); ++i) {
        numbers_[below - 1].clear();
        append_number(numbers_[below - 1], range.low + i, range.width);
        loop(below - 1);
      }
  }

  void innermost() {
    std::string name;
    for (std::size_t i = 0; i + 1 < element_.brackets.size(); ++i)
      name.append(element_.texts[i]).append(numbers_[i]);
    name.append(element_.texts[element_.brackets.size() - 1]);
    const std::size_t stem = name.size();
    for (const Range& range : element_.brackets.back())
      for (std::uint64_t i = 0; i < range.count(); ++i) {
        name.resize(stem);
        append_number(name, range.low + i, range.width);
        name.append(element_.texts.back());
        out_.emplace_back(name);
      }
  }

  const Element& element_;
  std::vector<std::string> numbers_;
  std::vector<HostName>& out_;
};

}  // namespace

Result<std::vector<HostName>> expand_hostlist(std::string_view text, std::size_t most) {
  std::vector<HostName> out;
  out.reserve(TRY(count_hostlist(text, most)));
  Element element;
  for (Reader reader(text, most); !reader.at_end();) {
    TRY(reader.read(element));
    Writer(element, out).write();
  }
  return out;
}

Result<std::size_t> count_hostlist(std::string_view text, std::size_t most) {
  Reader reader(text, most);
  Element element;
  while (!reader.at_end()) TRY(reader.read(element));
  return reader.total();
}

Result<void> check_host_name(std::string_view name) {
  if (name.empty()) return fail(ErrorKind::input, "a host name is empty");
  if (const std::size_t place = name.find_first_of(",[]"); place != std::string_view::npos)
    return fail(error_with_caret(name, place, name_of(name[place]) + " is not valid in a host name",
                                 "expand the host list first"));
  TRY(count_hostlist(name));
  return {};
}

std::vector<std::string_view> split_hostlist(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t start = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == ']') inside = text[i] == '[';
    if (text[i] != ',' || inside) continue;
    out.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  out.push_back(text.substr(start));
  return out;
}

Error error_with_caret(std::string_view text, std::size_t place, std::string what, std::string hint) {
  constexpr std::size_t context = 36;
  const std::size_t start = place > context ? place - context : 0;
  std::string shown(text.substr(start, 2 * context));
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  std::string mark(place - start, ' ');
  if (start > 0) shown.insert(0, "..."), mark.insert(0, "   ");
  if (start + 2 * context < text.size()) shown += "...";
  return Error{.kind = ErrorKind::input,
               .what = std::move(what),
               .where = fmt::format("host list, column {}", place + 1),
               .hint = std::move(hint),
               .also = {shown, mark + "^"}};
}

}  // namespace dlrun
