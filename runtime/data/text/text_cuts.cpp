// See text_cuts.hpp.
#include "runtime/data/text/text_cuts.hpp"

#include <algorithm>

#include "runtime/base/mapped_file.hpp"
#include "runtime/data/text/split_words.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::uint64_t kNear = 4096;  // bytes; words are shorter

std::size_t cut_from(std::string_view text, std::size_t at) {
  while (at < text.size() && !may_cut(text, at)) ++at;
  return at;
}

// The ranges of each text, in their order.
std::vector<std::vector<TextRange*>> ranges_by_text(std::size_t texts, std::vector<TextShard>& shards) {
  std::vector<std::vector<TextRange*>> out(texts);
  for (TextShard& shard : shards)
    for (TextRange& range : shard.ranges) out[range.file].push_back(&range);
  return out;
}

std::string line_of(const TextFile& text, const MovedCut& cut) {
  return fmt::format("{}: to be cut at byte {}, cut at {}{}: no word ends between them", text.path.string(),
                     cut.asked, cut.came, cut.came == text.bytes ? ", its end" : "");
}

}  // namespace

MovedCut move_to_words(std::string_view text, const std::vector<TextRange*>& ranges) {
  MovedCut furthest;
  std::uint64_t last = 0;  // cut
  for (TextRange* const range : ranges) {
    range->begin = last;
    const std::uint64_t asked = range->end;
    range->end = last = asked <= last ? last : cut_from(text, asked);
    const std::uint64_t moved = last - std::min(asked, last);
    const bool is_far = moved > kNear || last == text.size();
    if (is_far && moved > furthest.came - furthest.asked) furthest = {asked, last};
  }
  return furthest;
}

Result<std::vector<std::string>> cut_texts(const std::vector<TextFile>& texts,
                                           std::vector<TextShard>& shards) {
  const auto ranges = ranges_by_text(texts.size(), shards);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (ranges[i].size() < 2) continue;
    const MappedFile mapped = TRY(MappedFile::open(texts[i].path));
    if (mapped.bytes().size() != texts[i].bytes)
      return bad_input(mapped.name(), "was changed while it was read");
    const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
    const MovedCut cut = move_to_words(text, ranges[i]);
    if (cut.came > cut.asked) out.push_back(line_of(texts[i], cut));
  }
  return out;
}

}  // namespace dlrun::runtime
