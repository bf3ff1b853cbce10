// Channels counted up to whole blocks. Five channels in blocks of 16 have the bytes of sixteen whose last
// eleven are 0, and oneDNN has fast loops for a gradient of weights over sixteen where it has none over 4
// to 15. What it refuses: to count back a layout whose blocks do not end where the channels' would.
#pragma once

#include <optional>

#include "runtime/cpu/onednn.hpp"

namespace dlrun::runtime {

// The axis of the channels read, in activations as in weights without groups.
inline constexpr std::size_t kChannelAxis = 1;

inline std::int64_t channels_of(const Desc& desc) {
  return dims_of(desc)[kChannelAxis];
}

// That layout, the lanes beyond the last channel counted as channels.
inline Desc in_whole_blocks(Dims dims, DataType type, const Layout& layout) {
  std::int64_t& channels = dims[kChannelAxis];
  if (layout.block > 1) channels = (channels + layout.block - 1) / layout.block * layout.block;
  return {dims, type, tag_of(layout, dims.size())};
}

// The same bytes, of which only the first `channels` count; unset where oneDNN would not pad these to as
// many.
inline std::optional<Desc> with_channels(const Desc& desc, std::int64_t channels) {
  if (channels_of(desc) == channels) return desc;
  Blocking blocking = blocking_of(desc);
  std::int64_t block = 1;
  for (std::size_t level = 0; level < blocking.inner_axes.size(); ++level)
    if (blocking.inner_axes[level] == static_cast<std::int64_t>(kChannelAxis))
      block *= blocking.inner_blocks[level];
  if ((channels + block - 1) / block * block != blocking.padded_dims[kChannelAxis]) return std::nullopt;
  blocking.dims[kChannelAxis] = channels;
  return desc_of(blocking, type_of(desc));
}

}  // namespace dlrun::runtime
