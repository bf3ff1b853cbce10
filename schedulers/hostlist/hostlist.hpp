// The host-list language of Slurm: n[008-011,15],rack[0-1]node[2-3]-ib. Expansion gives names in Slurm's
// order and keeps duplicates; compression gives a short list that expands to the same names in the same
// order. Text that Slurm's own parser reads leniently (an open range, a blank, an empty name, a bracket that
// is not closed, a number that overflows) is refused: it was cut or mistyped, and a launcher must not run on
// what is left.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/types.hpp"

namespace dlrun {

// No cluster has more hosts; a list that names more is refused before anything is allocated.
inline constexpr std::size_t kMaxHosts = std::size_t{1} << 22;
// The longest name that DNS has.
inline constexpr std::size_t kMaxHostName = 253;

// The grammar: elements separated by commas; an element is a name in which brackets stand for numbers. A
// number keeps the width that it is written with; a range lo-hi has the width of `lo` (9-010 is 9 and 10).
// The order of several brackets is Slurm's: the last bracket is the innermost loop, the one before it the
// outermost, and the others follow it from right to left. So with two brackets the left one is the outer
// loop; with a[..]b[..]c[..] it is b, then a, then c.
// An Error (input) shows the text with a caret below the place that is wrong.
Result<std::vector<HostName>> expand_hostlist(std::string_view text, std::size_t most = kMaxHosts);
// How many names expand_hostlist() would give, without making them.
Result<std::size_t> count_hostlist(std::string_view text, std::size_t most = kMaxHosts);

// The inverse: expand_hostlist(compress_hostlist(x)) is x for all lists of names that check_host_name()
// takes. "Short" means: neighbours that differ in one number share an element, so that no other way of
// writing one bracket an element has fewer elements; then neighbouring elements that differ in one number
// more share one, where Slurm's order of brackets allows it. Ranges are written as Slurm writes them:
// 008-011, not 008-11; n[1-2], although n1,n2 has a letter less.
std::string compress_hostlist(std::span<const HostName> hosts);

// What a host may be called: letters, digits, '.', '-', '_' and the ':' of addresses; neither '-' nor '.' in
// front, where it would be read as a flag or a path; not longer than DNS allows. An Error (input) has a
// caret.
Result<void> check_host_name(std::string_view name);

// The elements of a list as they are written: split at the commas outside brackets. Empty ones are kept.
std::vector<std::string_view> split_hostlist(std::string_view text);

// An Error (input) whose further lines show `text` around `place` and a caret below it.
Error error_with_caret(std::string_view text, std::size_t place, std::string what, std::string hint = {});

}  // namespace dlrun
