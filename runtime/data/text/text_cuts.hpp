// Where the ranges of texts are cut: at the first place, from the one that was asked for on, where no word
// changes. A text that has no such place nearby is named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/text/text_parts.hpp"

namespace dlrun::runtime {

/// Moves the borders of the ranges of one text, which follow each other; of ranges that have no place of
/// their own, all but the first become empty. Returns the cut that was moved furthest.
struct MovedCut {
  std::uint64_t asked = 0, came = 0;
};
MovedCut move_to_words(std::string_view text, const std::vector<TextRange*>& ranges);

/// Moves the ranges of all texts. Returns a line for each text that could not be cut near the asked place.
Result<std::vector<std::string>> cut_texts(const std::vector<TextFile>& texts,
                                           std::vector<TextShard>& shards);

}  // namespace dlrun::runtime
