// See plain_layout.hpp.
#include "runtime/cpu/plain_layout.hpp"

#include <array>
#include <numeric>

namespace dlrun::runtime {

namespace {

Desc plain_desc(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t axis = dims.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * dims[axis];
  return {dims, DataType::f32, strides};
}

void reorder(const Desc& from, const void* source, const Desc& to, void* target, const dnnl::engine& engine) {
  dnnl::stream stream(engine);
  dnnl::memory in(from, engine, const_cast<void*>(source));  // oneDNN has no read-only memory
  dnnl::memory out(to, engine, target);
  dnnl::reorder(in, out).execute(stream, in, out);
  stream.wait();
}

// The arena's layout of a matrix whose columns are an image, as one layout of `shape`: a block of the
// matrix's columns must be a run of channels of one pixel. Unset where it is not.
std::optional<Desc> joined(const Desc& arena, const Desc& columns) {
  const Blocking matrix = blocking_of(arena), image = blocking_of(columns);
  const bool rows = matrix.dims.size() == 2 && matrix.inner_axes == std::vector<std::int64_t>{1, 0};
  if (!rows || image.dims.size() != 4) return std::nullopt;
  const std::int64_t run = matrix.inner_blocks[0];
  if (image.padded_dims[1] % run != 0) return std::nullopt;
  const bool blocked = image.inner_axes == std::vector<std::int64_t>{1} && image.inner_blocks[0] == run;
  const bool plain = image.inner_axes.empty() && image.strides[1] == 1;
  if (!blocked && !plain) return std::nullopt;
  const std::array<std::int64_t, 3> steps{plain ? run : image.strides[1], image.strides[2], image.strides[3]};
  Blocking both = image;
  both.inner_axes = matrix.inner_axes, both.inner_blocks = matrix.inner_blocks;
  both.padded_dims[0] = matrix.padded_dims[0];
  both.strides[0] = matrix.strides[0];
  for (std::size_t axis = 0; axis < steps.size(); ++axis) {
    if (steps[axis] % run != 0) return std::nullopt;
    both.strides[axis + 1] = steps[axis] / run * matrix.strides[1];
  }
  return desc_of(both, type_of(columns));
}

Desc matrix_desc(const PlainPath& path) {
  return plain_desc(dims_of(path.arena));
}

}  // namespace

PlainPath plain_path(const Desc& layout, const std::optional<Desc>& columns,
                     const std::vector<std::int64_t>& shape) {
  if (columns)
    if (const auto direct = joined(layout, *columns))
      return {*direct, plain_desc(dims_of(*columns)), std::nullopt};
  // Grouped weights have an axis more in oneDNN: the filters, cut by group. Plain, that is the same order.
  const bool grouped = dims_of(layout).size() == shape.size() + 1;
  return {layout, plain_desc(grouped ? dims_of(layout) : Dims(shape.begin(), shape.end())), columns};
}

std::size_t bytes_between(const PlainPath& path) {
  return path.columns && path.arena != matrix_desc(path) ? matrix_desc(path).get_size() : 0;
}

void to_plain(const PlainPath& path, const void* source, void* target, std::byte* between,
              const dnnl::engine& engine) {
  if (!path.columns) return reorder(path.arena, source, path.plain, target, engine);
  const Desc viewed_plain = plain_desc(dims_of(*path.columns));
  if (path.arena == matrix_desc(path)) return reorder(*path.columns, source, viewed_plain, target, engine);
  reorder(path.arena, source, matrix_desc(path), between, engine);
  reorder(*path.columns, between, viewed_plain, target, engine);
}

void from_plain(const PlainPath& path, const void* source, void* target, std::byte* between,
                const dnnl::engine& engine) {
  if (!path.columns) return reorder(path.plain, source, path.arena, target, engine);
  const Desc viewed_plain = plain_desc(dims_of(*path.columns));
  if (path.arena == matrix_desc(path)) return reorder(viewed_plain, source, *path.columns, target, engine);
  reorder(viewed_plain, source, *path.columns, between, engine);
  reorder(matrix_desc(path), between, path.arena, target, engine);
}

namespace {

// How many blocks an axis is cut into.
std::int64_t blocks_of(const Blocking& layout, std::size_t axis) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < layout.inner_axes.size(); ++i)
    if (layout.inner_axes[i] == static_cast<std::int64_t>(axis)) rows *= layout.inner_blocks[i];
  return layout.padded_dims[axis] / rows;
}

}  // namespace

Cuts cuts_of(const PlainPath& path, const std::vector<std::int64_t>& shape) {
  if (path.columns) return {};
  const Blocking layout = blocking_of(path.arena);
  std::optional<std::size_t> outer;
  for (std::size_t axis = 0; axis < layout.dims.size(); ++axis)
    if (blocks_of(layout, axis) > 1 && (!outer || layout.strides[axis] > layout.strides[*outer]))
      outer = axis;
  if (!outer) return {};
  const bool same_axis = Dims(shape.begin(), shape.end()) == layout.dims || *outer == 0;
  const std::int64_t blocks = blocks_of(layout, *outer), stride = layout.strides[*outer];
  const bool is_dense = static_cast<std::size_t>(blocks * stride) * sizeof(float) == path.arena.get_size();
  if (!same_axis || !is_dense || layout.dims[*outer] != shape[*outer]) return {};
  constexpr auto kLine = static_cast<std::int64_t>(kSliceAlignment);
  const std::int64_t together = kLine / std::gcd(stride, kLine);
  return {static_cast<std::size_t>(stride * together), *outer,
          layout.padded_dims[*outer] / blocks * together};
}

PlainPath path_of_rows(const PlainPath& path, const Cuts& cuts, std::int64_t first, std::int64_t count) {
  Dims dims = dims_of(path.arena), offsets(dims.size(), 0);
  offsets[cuts.axis] = first;
  dims[cuts.axis] = count;
  return {path.arena.submemory_desc(dims, offsets), plain_desc(dims), std::nullopt};
}

}  // namespace dlrun::runtime
