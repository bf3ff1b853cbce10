// Writing host lists. One rule is applied until nothing changes: neighbours that differ in one number share
// an element. The first pass works on names, later ones on what the pass before wrote, whose brackets are
// opaque to them; so every pass is linear, and one more bracket comes of each.
#include <cstdint>
#include <limits>
#include <optional>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

// More digits than this are no number for us; those in front of the last ones are text.
constexpr std::size_t kMaxDigits = 18;

std::size_t end_of_digits(std::string_view text, std::size_t start) {
  while (start < text.size() && is_digit(text[start])) ++start;
  return start;
}

// Where a number stands in each of two texts that are equal but for it.
struct Place {
  std::size_t start, end_in_first, end_in_second;
};

enum class Relation { other, equal, one_number };
struct Compared {
  Relation relation;
  Place place;
};

// Slurm's loops: a new bracket is the outermost one if it stands just left of the last.
bool may_become_bracket(std::string_view text, std::size_t end) {
  const std::size_t last = text.rfind('[');
  if (last == std::string_view::npos) return true;
  return end <= last && text.substr(end, last - end).find('[') == std::string_view::npos;
}

Compared compare(std::string_view first, std::string_view second) {
  const std::size_t shorter = std::min(first.size(), second.size());
  std::size_t start = 0;
  while (start < shorter && first[start] == second[start]) ++start;
  if (start == first.size() && start == second.size()) return {Relation::equal, {}};
  const std::size_t difference = start;
  while (start > 0 && is_digit(first[start - 1])) --start;
  const std::size_t end1 = end_of_digits(first, start), end2 = end_of_digits(second, start);
  if (end1 == start || end2 == start || first.substr(end1) != second.substr(end2))
    return {Relation::other, {}};
  if (const std::size_t longer = std::max(end1, end2) - start; longer > kMaxDigits) {
    if (end1 != end2) return {Relation::other, {}};
    start += longer - kMaxDigits;
    if (difference < start) return {Relation::other, {}};
  }
  if (!may_become_bracket(first, end1)) return {Relation::other, {}};
  return {Relation::one_number, {start, end1, end2}};
}

// The number that equal texts are folded at: the last one that may become a bracket.
std::optional<Place> number_to_repeat(std::string_view text) {
  const std::size_t last = text.rfind('[');
  for (std::size_t end = last == std::string_view::npos ? text.size() : last; end > 0; --end) {
    if (text[end - 1] == ']') return std::nullopt;
    if (!is_digit(text[end - 1])) continue;
    std::size_t start = end;
    while (start > 0 && is_digit(text[start - 1]) && end - start < kMaxDigits) --start;
    return Place{start, end, end};
  }
  return std::nullopt;
}

std::uint64_t value_of(std::string_view digits) {
  std::uint64_t out = 0;
  for (const char c : digits) out = out * 10 + static_cast<std::uint64_t>(c - '0');
  return out;
}

// The inside of a bracket, written a number at a time.
class Ranges {
 public:
  void add(std::string_view digits) {
    const std::uint64_t value = value_of(digits);
    const bool natural = digits.size() == 1 || digits[0] != '0';
    const bool same_width = digits.size() == width_ || (natural && digits.size() > width_);
    if (!text_.empty() && value == high_ + 1 && same_width) {
      high_ = value;
      high_text_ = digits;
      return;
    }
    close();
    if (!text_.empty()) text_ += ',';
    text_ += digits;
    high_ = value;
    width_ = digits.size();
  }
  std::string finish() {
    close();
    return std::move(text_);
  }

 private:
  void close() {
    if (!high_text_.empty()) text_.append("-").append(high_text_);
    high_text_.clear();
  }

  std::string text_, high_text_;
  std::uint64_t high_ = 0;
  std::size_t width_ = 0;  // of the range's low end
};

// From `first` on, the neighbours that share an element; `place` is the number they differ in.
struct Run {
  std::size_t end;
  std::optional<Place> place;
};

template <class Text>
Run run_from(const std::vector<Text>& in, std::size_t first) {
  Run out{first + 1, {}};
  for (; out.end < in.size(); ++out.end) {
    const Compared found = compare(in[out.end - 1], in[out.end]);
    if (found.relation == Relation::other) break;
    if (found.relation == Relation::equal) continue;
    if (out.place && out.place->start != found.place.start) break;
    out.place = found.place;
  }
  if (!out.place && out.end > first + 1) {
    out.place = number_to_repeat(in[first]);
    if (!out.place) out.end = first + 1;
  }
  return out;
}

template <class Text>
std::string fold_run(const std::vector<Text>& in, std::size_t first, const Run& run) {
  if (run.end == first + 1) return std::string(in[first]);
  const std::size_t start = run.place->start;
  const std::string_view text = in[first];
  const std::size_t end = end_of_digits(text, start);
  Ranges ranges;
  for (std::size_t i = first; i < run.end; ++i) {
    const std::string_view member = in[i];
    ranges.add(member.substr(start, end_of_digits(member, start) - start));
  }
  std::string out(text.substr(0, start));
  return out.append("[").append(ranges.finish()).append("]").append(text.substr(end));
}

template <class Text>
std::vector<std::string> fold(const std::vector<Text>& in) {
  std::vector<std::string> out;
  for (std::size_t first = 0; first < in.size();) {
    const Run run = run_from(in, first);
    out.push_back(fold_run(in, first, run));
    first = run.end;
  }
  return out;
}

}  // namespace

std::string compress_hostlist(std::span<const HostName> hosts) {
  std::vector<std::string_view> names;
  names.reserve(hosts.size());
  for (const HostName& host : hosts) names.emplace_back(host.get());
  std::vector<std::string> elements = fold(names);
  for (std::size_t before = names.size(); elements.size() < before && elements.size() > 1;) {
    before = elements.size();
    elements = fold(elements);
  }
  std::string out;
  for (const std::string& element : elements) out.append(out.empty() ? "" : ",").append(element);
  return out;
}

}  // namespace dlrun
