#include "schedulers/slurm/gres.hpp"

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

constexpr int kMaxGpus = 4096;  // of one node; a longer list is a mistake

// Splits at the commas outside parentheses, keeping each part's place.
std::vector<std::pair<std::size_t, std::string_view>> entries_of(std::string_view text) {
  std::vector<std::pair<std::size_t, std::string_view>> out;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    out.emplace_back(start, text.substr(start, i - start));
    start = i + 1;
  }
  return out;
}

struct GresEntry {
  std::string_view text;   // the whole text
  std::size_t place;       // of this entry in it
  std::string_view words;  // less the part in parentheses
  std::string_view note;   // the part in parentheses, without them
};

tl::unexpected<Error> wrong(const GresEntry& entry, std::string what) {
  return fail(error_with_caret(entry.text, entry.place, std::move(what),
                               "the form is gpu[:TYPE]:COUNT[(IDX:LIST)] as scontrol show job -d prints it"));
}

Result<void> read_note(const GresEntry& entry, GpuGres& out) {
  if (entry.note.empty()) return {};
  const std::size_t colon = entry.note.find(':');
  const std::string_view key = entry.note.substr(0, colon);
  if (colon == entry.note.npos || (key != "IDX" && key != "S"))
    return wrong(entry, fmt::format("'({})' is neither IDX: nor S:", entry.note));
  const std::string_view list = entry.note.substr(colon + 1);
  if (list == "N/A") return {};
  auto numbers = parse_index_list(list);
  if (!numbers) return wrong(entry, numbers.error().what);
  (key == "IDX" ? out.indices : out.sockets) = std::move(*numbers);
  return {};
}

Result<GpuGres> read_entry(const GresEntry& entry) {
  GpuGres out;
  std::vector<std::string> words = split(entry.words, ':');
  words.erase(words.begin());
  int count = 1;
  const auto number =
      words.empty() ? fail(ErrorKind::input, "no count") : parse_integer(words.back(), 0, kMaxGpus);
  if (number) {
    count = static_cast<int>(*number);
    words.pop_back();
  } else if (words.size() > 1) {
    return wrong(entry, fmt::format("'{}' is not a GPU count", words.back()));
  }
  if (words.size() > 1 || (words.size() == 1 && words[0].empty()))
    return wrong(entry, fmt::format("'{}' is not a gres entry", entry.words));
  if (!words.empty() && words[0] != "(null)") out.type = words[0];
  out.count = count;
  TRY(read_note(entry, out));
  if (!out.indices.empty() && static_cast<int>(out.indices.size()) != out.count)
    return wrong(entry, fmt::format("{} GPUs, but {} indices", out.count, out.indices.size()));
  return out;
}

// The part in parentheses is the last one; the type itself may be "(null)".
Result<GresEntry> cut_note(std::string_view text, std::size_t place, std::string_view part) {
  GresEntry entry{.text = text, .place = place, .words = part, .note = {}};
  const std::size_t open = std::max(part.rfind("(IDX:") == part.npos ? 0 : part.rfind("(IDX:"),
                                    part.rfind("(S:") == part.npos ? 0 : part.rfind("(S:"));
  if (open == 0) {
    if (part.ends_with("(")) return wrong(entry, "the text is truncated");
    return entry;
  }
  if (part.back() != ')') return wrong(entry, "the parenthesis is not closed");
  entry.words = part.substr(0, open);
  entry.note = part.substr(open + 1, part.size() - open - 2);
  return entry;
}

}  // namespace

Result<std::vector<GpuGres>> parse_gres(std::string_view text) {
  std::vector<GpuGres> out;
  if (text.empty() || text == "(null)" || text == "N/A") return out;
  for (const auto& [place, part] : entries_of(text)) {
    std::string_view word = part;
    if (word.starts_with("gres:") || word.starts_with("gres/")) word.remove_prefix(5);
    if (word != "gpu" && !word.starts_with("gpu:") && !word.starts_with("gpu(")) {
      if (word.empty()) return wrong(GresEntry{text, place, {}, {}}, "an entry is empty");
      continue;
    }
    const GresEntry entry = TRY(cut_note(text, place, word));
    out.push_back(TRY(read_entry(entry)));
  }
  return out;
}

Result<std::vector<int>> parse_index_list(std::string_view text) {
  std::vector<int> out;
  std::size_t place = 0;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto low = parse_integer(part.substr(0, dash), 0, kMaxGpus);
    const auto high = dash == part.npos ? low : parse_integer(part.substr(dash + 1), 0, kMaxGpus);
    if (!low || !high || *high < *low)
      return fail(
          error_with_caret(text, place, fmt::format("'{}' is not an index or a range of them", part)));
    for (auto i = *low; i <= *high; ++i) out.push_back(static_cast<int>(i));
    place += part.size() + 1;
  }
  return out;
}

}  // namespace dlrun
