// Between the layout of a parameter in the arenas, which is oneDNN's choice, and the plain one that people
// and checkpoints see.
#pragma once

#include <optional>
#include <vector>

#include "runtime/cpu/onednn.hpp"
#include "runtime/engine/state_layout.hpp"

namespace dlrun::runtime {

// Through the plain matrix where `columns` is set.
struct PlainPath {
  Desc arena, plain;
  std::optional<Desc> columns;
};

/// From `layout`, which may be of a matrix whose columns are an image in its own layout, to `shape`.
PlainPath plain_path(const Desc& layout, const std::optional<Desc>& columns,
                     const std::vector<std::int64_t>& shape);
/// Bytes that the path needs in between; 0 where it is direct.
std::size_t bytes_between(const PlainPath& path);
void to_plain(const PlainPath& path, const void* source, void* target, std::byte* between,
              const dnnl::engine& engine);
void from_plain(const PlainPath& path, const void* source, void* target, std::byte* between,
                const dnnl::engine& engine);

/// Where ranks may divide such a parameter: along the outermost axis of its layout, in blocks of whole cache
/// lines. Not at all where what follows one another in the arena is no range on an axis.
Cuts cuts_of(const PlainPath& path, const std::vector<std::int64_t>& shape);
/// The path of the rows [first, first + count) of the axis on which it is cut; its arena is where that of the
/// whole would begin.
PlainPath path_of_rows(const PlainPath& path, const Cuts& cuts, std::int64_t first, std::int64_t count);

}  // namespace dlrun::runtime
