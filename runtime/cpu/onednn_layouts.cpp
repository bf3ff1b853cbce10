// Layouts as oneDNN 2 and 3 show and make them.
#include <algorithm>
#include <array>

#include "runtime/cpu/onednn.hpp"

namespace dlrun::runtime {

#if DNNL_VERSION_MAJOR == 2

Blocking blocking_of(const Desc& desc) {
  const dnnl_memory_desc_t& from = desc.data;
  const auto& blocks = from.format_desc.blocking;
  return {Dims(from.dims, from.dims + from.ndims), Dims(from.padded_dims, from.padded_dims + from.ndims),
          Dims(blocks.strides, blocks.strides + from.ndims),
          std::vector<std::int64_t>(blocks.inner_idxs, blocks.inner_idxs + blocks.inner_nblks),
          std::vector<std::int64_t>(blocks.inner_blks, blocks.inner_blks + blocks.inner_nblks)};
}

std::optional<Desc> desc_of(const Blocking& blocking, DataType type) {
  dnnl_memory_desc_t out{};
  out.ndims = static_cast<int>(blocking.dims.size());
  out.data_type = static_cast<dnnl_data_type_t>(type);
  out.format_kind = dnnl_blocked;
  std::copy(blocking.dims.begin(), blocking.dims.end(), out.dims);
  std::copy(blocking.padded_dims.begin(), blocking.padded_dims.end(), out.padded_dims);
  auto& blocks = out.format_desc.blocking;
  std::copy(blocking.strides.begin(), blocking.strides.end(), blocks.strides);
  blocks.inner_nblks = static_cast<int>(blocking.inner_axes.size());
  std::copy(blocking.inner_axes.begin(), blocking.inner_axes.end(), blocks.inner_idxs);
  std::copy(blocking.inner_blocks.begin(), blocking.inner_blocks.end(), blocks.inner_blks);
  return Desc(out);
}

Dims dims_of(const Desc& desc) {
  return desc.dims();
}

DataType type_of(const Desc& desc) {
  return desc.data_type();
}

#else

namespace {

// A layout of that tag, where the dimensions can have it.
Desc tagged(const Dims& dims, DataType type, int tag) {
  return {dims, type, static_cast<Tag>(tag), true};
}

bool has_layout(const Desc& desc, const Blocking& wanted) {
  return desc.get(true) != nullptr && desc.get_size() > 0 && blocking_of(desc) == wanted;
}

}  // namespace

Blocking blocking_of(const Desc& desc) {
  return {desc.get_dims(), desc.get_padded_dims(), desc.get_strides(), desc.get_inner_idxs(),
          desc.get_inner_blks()};
}

// Tags are asked for one by one, those that were found before first: a plan has few different ones.
std::optional<Desc> desc_of(const Blocking& blocking, DataType type) {
  thread_local std::vector<int> known;
  if (blocking.inner_axes.empty() && blocking.dims == blocking.padded_dims)
    return Desc(blocking.dims, type, blocking.strides);
  for (const int tag : known)
    if (Desc found = tagged(blocking.dims, type, tag); has_layout(found, blocking)) return found;
  for (int tag = dnnl_a; tag < dnnl_format_tag_last; ++tag) {
    Desc found = tagged(blocking.dims, type, tag);
    if (!has_layout(found, blocking)) continue;
    known.push_back(tag);
    return found;
  }
  return std::nullopt;
}

Dims dims_of(const Desc& desc) {
  return desc.get_dims();
}

DataType type_of(const Desc& desc) {
  return desc.get_data_type();
}

#endif

}  // namespace dlrun::runtime
