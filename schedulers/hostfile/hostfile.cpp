// Reading one line: words, then what each is. The first holds hosts; the others are options (KEY=VALUE, with
// or without blanks around the '='), a count, or the private address of a machine in a cloud.
#include "schedulers/hostfile/hostfile.hpp"

#include <algorithm>
#include <array>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/named_file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

constexpr int kMaxSlots = 1'000'000;

struct Word {
  std::string_view text;
  std::size_t column;  // from 0
};

enum class Option { slots, most_slots, cpus, gpus, address, unused, ssh, shape };
struct OptionName {
  std::string_view name;  // with '_' for '-'
  Option option;
};
constexpr std::array<OptionName, 24> kOptions{{
    {"slots", Option::slots},
    {"count", Option::slots},
    {"cpu", Option::slots},
    {"max_slots", Option::most_slots},
    {"slots_max", Option::most_slots},
    {"max_count", Option::most_slots},
    {"count_max", Option::most_slots},
    {"max_cpu", Option::most_slots},
    {"cpu_max", Option::most_slots},
    {"cpus", Option::cpus},
    {"gpus", Option::gpus},
    {"address", Option::address},
    {"binding", Option::unused},
    {"ifname", Option::unused},
    {"user", Option::ssh},
    {"username", Option::ssh},
    {"user_name", Option::ssh},
    {"port", Option::ssh},
    {"boards", Option::shape},
    {"sockets", Option::shape},
    {"cores", Option::shape},
    {"sockets_per_board", Option::shape},
    {"cores_per_socket", Option::shape},
    {"rank", Option::shape},
}};

std::optional<Option> option_of(std::string_view word) {
  std::string name(word);
  std::replace(name.begin(), name.end(), '-', '_');
  const auto found = std::find_if(kOptions.begin(), kOptions.end(),
                                  [&](const OptionName& each) { return each.name == name; });
  if (found == kOptions.end()) return std::nullopt;
  return found->option;
}

std::string nearest_option(std::string_view word) {
  std::vector<std::string> names;
  for (const OptionName& each : kOptions)
    if (each.option != Option::ssh && each.option != Option::shape) names.emplace_back(each.name);
  const std::string near = nearest(word, names);
  return near.empty() ? "a line is HOST, HOST:COUNT or HOST slots=COUNT"
                      : fmt::format("did you mean '{}'?", near);
}

std::string_view without_comment(std::string_view line) {
  return line.substr(0, std::min(line.find('#'), line.find("//")));
}

std::vector<Word> words_with_columns(std::string_view line) {
  std::vector<Word> out;
  const auto ends_word = [](char c) { return c == ' ' || c == '\t' || c == '='; };
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ' || line[i] == '\t') continue;
    std::size_t end = i + 1;
    if (line[i] != '=')
      while (end < line.size() && !ends_word(line[end])) ++end;
    out.push_back({line.substr(i, end - i), i});
    i = end - 1;
  }
  return out;
}

class LineReader {
 public:
  LineReader(std::string_view line, std::size_t number, HostEntries& out)
      : line_(line), number_(number), words_(words_with_columns(without_comment(line))), out_(out) {}

  Result<void> read() {
    if (words_.empty()) return {};
    first_ = out_.entries.size();
    TRY(hosts());
    for (next_ = 1; next_ < words_.size(); ++next_)
      TRY(next_ + 1 < words_.size() && words_[next_ + 1].text == "=" ? option() : bare_word());
    return {};
  }

 private:
  // a[1-3]:2,b:2
  Result<void> hosts() {
    const Word& word = words_[0];
    std::size_t column = word.column, counted = 0;
    const std::vector<std::string_view> elements = split_hostlist(word.text);
    for (const std::string_view element : elements) {
      if (element.empty())
        return fail(error(column, "a host name is empty: the list may have been cut", "remove the comma"));
      const std::size_t colon = colon_of(element);
      std::optional<int> slots;
      if (colon != element.size()) {
        slots = TRY(count(element.substr(colon + 1), column + colon + 1));
        ++counted;
      }
      if (!slots && counted > 0) return fail(no_count(element, column));
      TRY(add_hosts(element.substr(0, colon), column, slots));
      column += element.size() + 1;
    }
    if (counted > 0 && counted < elements.size()) return fail(no_count(elements[0], word.column));
    return {};
  }

  Error no_count(std::string_view element, std::size_t column) {
    const bool has_colons = is_address(element) && element.find(':') != std::string_view::npos;
    const std::string host = has_colons ? fmt::format("[{}]", element) : std::string(element);
    return error(column, fmt::format("host {} has no count, and other hosts of the list have one", element),
                 fmt::format("write it as {}:1", host));
  }

  // Where ":COUNT" begins; an address has colons of its own.
  static std::size_t colon_of(std::string_view element) {
    const std::size_t colon = element.rfind(':');
    const bool in_brackets =
        colon != std::string_view::npos && element.find(']', colon) != std::string_view::npos;
    return colon == std::string_view::npos || in_brackets || is_address(element) ? element.size() : colon;
  }

  Result<void> add_hosts(std::string_view element, std::size_t column, std::optional<int> slots) {
    if (element.starts_with('[') && element.ends_with(']') &&
        is_address(element.substr(1, element.size() - 2)))
      element = element.substr(1, element.size() - 2), ++column;  // [fe80::1]:2
    auto names = expand_hostlist(element, kMaxHosts - out_.entries.size());
    if (!names) {
      // Its column is one of the element; the line is what people see.
      const std::size_t inside = names.error().also.empty() ? 0 : column_of(names.error());
      return fail(error(column + inside, names.error().what, names.error().hint));
    }
    for (HostName& name : *names) {
      if (name.get().find(':') != std::string::npos && !is_address(name.get()))
        return fail(error(column, fmt::format("'{}' is neither HOST:COUNT nor an address", element)));
      out_.entries.push_back({.host = std::move(name),
                              .slots = slots,
                              .most_slots = {},
                              .cpus = {},
                              .gpus = {},
                              .address = {},
                              .line = number_});
    }
    return {};
  }

  static std::size_t column_of(const Error& problem) {
    const auto column = parse_integer(problem.where.substr(problem.where.rfind(' ') + 1), 1, 1 << 30);
    return column ? static_cast<std::size_t>(*column - 1) : 0;
  }

  Result<int> count(std::string_view text, std::size_t column) {
    const auto value = parse_integer(text, 1, kMaxSlots);
    if (!value)
      return fail(
          error(column,
                text.empty() ? std::string("a count is missing here")
                             : fmt::format("slot count '{}' is out of range [1, {}]", text, kMaxSlots),
                text.empty() ? "write it as HOST:4 or slots=4" : "remove a host that must not be used"));
    return static_cast<int>(*value);
  }

  Result<int> number(const Word& word, std::string_view of_what, int low) {
    if (const auto value = parse_integer(word.text, low, kMaxSlots)) return static_cast<int>(*value);
    return fail(error(word.column, fmt::format("the number of {1}, '{0}', is out of range [{2}, {3}]",
                                               word.text, of_what, low, kMaxSlots)));
  }

  // A count, or the private address of a pair.
  Result<void> bare_word() {
    const Word& word = words_[next_];
    if (next_ == 1 && is_address(word.text)) return address(word, "private address");
    if (word.text.find_first_not_of("0123456789") == std::string_view::npos)
      return each_entry(word, &HostEntry::slots, "a count", TRY(count(word.text, word.column)));
    if (word.text == "=") return fail(error(word.column, "'=' without an option's name before it"));
    if (option_of(word.text))
      return fail(error(word.column, fmt::format("option '{}' has no value", word.text),
                        fmt::format("write it as {}=4", word.text)));
    std::string hint = out_.source == "--hosts"
                           ? "separate hosts by commas: a:2,b:2"
                           : "one host per line, as HOST, HOST:COUNT or HOST slots=COUNT";
    if (next_ == 1 && is_address(words_[0].text))
      hint = "a file like /etc/hosts is not a host file: keep one name per line";
    return fail(error(word.column, fmt::format("'{}' is neither an option nor a count", word.text), hint));
  }

  Result<void> option() {
    const Word& name = words_[next_];
    const auto option = option_of(name.text);
    if (name.text == "=" || !option)
      return fail(error(name.column, fmt::format("unknown word '{}'", name.text), nearest_option(name.text)));
    next_ += 2;
    if (next_ == words_.size() || words_[next_].text == "=")
      return fail(error(name.column, fmt::format("option '{}' has no value", name.text)));
    const Word& value = words_[next_];
    switch (*option) {
      case Option::slots:
        return each_entry(name, &HostEntry::slots, name.text, TRY(count(value.text, value.column)));
      case Option::most_slots:
        return each_entry(name, &HostEntry::most_slots, name.text, TRY(count(value.text, value.column)));
      case Option::cpus:
        return each_entry(name, &HostEntry::cpus, name.text, TRY(number(value, "cores", 1)));
      case Option::gpus:
        return each_entry(name, &HostEntry::gpus, name.text, TRY(number(value, "GPUs", 0)));
      case Option::address:
        return address(value, "address");
      case Option::unused:
        out_.warnings.push_back(fmt::format("{}:{}: {}={} is ignored: dlrun binds ranks itself", out_.source,
                                            number_, name.text, value.text));
        return {};
      case Option::ssh:
        return fail(error(name.column, fmt::format("option '{}' is not supported in a host file", name.text),
                          "set it in ~/.ssh/config"));
      case Option::shape:
        break;
    }
    return fail(error(name.column, fmt::format("option '{}' is not supported in a host file", name.text),
                      "set the number of ranks of a host: slots=4"));
  }

  template <class Value>
  Result<void> each_entry(const Word& place, std::optional<Value> HostEntry::*member, std::string_view what,
                          const Value& value) {
    for (std::size_t i = first_; i < out_.entries.size(); ++i) {
      if (out_.entries[i].*member)
        return fail(
            error(place.column, fmt::format("{} is given twice for host {}", what, out_.entries[i].host)));
      out_.entries[i].*member = value;
    }
    return {};
  }

  Result<void> address(const Word& word, std::string_view what) {
    if (out_.entries.size() - first_ != 1)
      return fail(error(word.column, "one address for several hosts", "write one host per line"));
    if (const auto name = check_host_name(word.text); !name)
      return fail(error(word.column, name.error().what));
    if (is_private_address(words_[0].text) && is_address(word.text) && !is_private_address(word.text))
      return fail(error(
          word.column, fmt::format("the second address, {}, is a public one and the first is not", word.text),
          "the public address comes first: PUBLIC PRIVATE"));
    return each_entry(word, &HostEntry::address, what, std::string(word.text));
  }

  Error error(std::size_t column, std::string what, std::string hint = {}) {
    if (hint.empty() && out_.source == "--hosts")
      hint = "write it as --hosts 'a:2,b:2' or --hosts 'n[1-4]:8'";
    Error out = error_with_caret(line_, column, std::move(what), std::move(hint));
    const bool is_file = out_.source != "--hosts";
    out.kind = is_file ? ErrorKind::allocation : ErrorKind::usage;
    out.where = is_file ? fmt::format("{}:{}:{}", out_.source, number_, column + 1)
                        : fmt::format("--hosts, column {}", column + 1);
    return out;
  }

  std::string_view line_;
  std::size_t number_;
  std::vector<Word> words_;
  HostEntries& out_;
  std::size_t first_ = 0, next_ = 0;
};

}  // namespace

Result<HostEntries> read_hostfile(std::string_view whole, std::string_view name) {
  auto decoded = utf8_text(whole, name);
  if (!decoded) decoded.error().kind = ErrorKind::allocation;
  const std::string_view text = TRY(std::move(decoded));
  HostEntries out;
  out.source = name;
  std::size_t number = 1;
  for (std::size_t start = 0; start < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, end - start);
    if (line.ends_with('\r')) line.remove_suffix(1);
    TRY(LineReader(line, number, out).read());
    start = end + 1;
  }
  if (out.entries.empty())
    return fail(Error{.kind = ErrorKind::allocation,
                      .what = "the host file names no host",
                      .where = out.source,
                      .hint = "write one host per line, as HOST slots=COUNT"});
  return out;
}

Result<HostEntries> read_host_words(std::string_view words) {
  HostEntries out;
  out.source = "--hosts";
  TRY(LineReader(words, 1, out).read());
  if (out.entries.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = "--hosts names no host",
                      .hint = "write it as --hosts 'a:2,b:2' or --hosts 'n[1-4]:8'"});
  return out;
}

}  // namespace dlrun
