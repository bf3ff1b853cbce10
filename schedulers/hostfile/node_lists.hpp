// What several backends share: variables that name files, files that repeat node names, counts like
// 2(x3),1, and the Errors about sources that are missing or contradict each other. Nothing is repaired here:
// a line that cannot be read is named with its number.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedulers/allocation.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun {

// No node has more slots, CPUs or lines than this; a number beyond it is a mistake.
inline constexpr int kMaxSlots = 1 << 20;
// Since 1970: no job ends later.
inline constexpr std::int64_t kLastSecond = 100'000'000'000;

// A line of a file: its number, counted from 1, and its words.
struct WordLine {
  std::size_t number = 0;
  std::vector<std::string> words;
};
// The lines that have words, in order.
std::vector<WordLine> word_lines(std::string_view text);

struct NamedFile {
  std::string path, text;
};
// The file that a variable names. An Error (allocation) where the variable is not set or the file unreadable.
Result<NamedFile> file_of_variable(const Environment& environment, std::string_view variable);

// A file with one node name a line, a line for each slot: nodes in the order of first sight. Several
// spellings of a node count together, the first one is kept. An Error where the file is empty or a line is no
// name.
Result<std::vector<AllocatedNode>> nodes_of_lines(std::string_view text, std::string_view where);

// Adds up entries that mean the same node, in the order of first sight.
Result<std::vector<AllocatedNode>> group_nodes(const std::vector<AllocatedNode>& entries,
                                               std::string_view where);

// "2(x3),1" -> 2 2 2 1.
Result<std::vector<int>> expand_counts(std::string_view text, std::string_view where);

// An allocation Error about a text in a file or variable.
Error unreadable(std::string what, std::string_view where, std::string_view hint = {});
// Two sources that must agree and do not; shows both.
Error conflict(std::string_view what, std::string_view first, std::string_view second);
// Turns an Error of a parser into one about the allocation, with its place.
Error about_allocation(Error error, std::string_view where);

// Whether the lists name the same nodes with the same slots, in whatever order and spelling.
Result<bool> same_slots(const std::vector<AllocatedNode>& one, const std::vector<AllocatedNode>& other);
// "n1:2 n2:4", for people; cut after some.
std::string describe(const std::vector<AllocatedNode>& nodes);

}  // namespace dlrun
