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
  return desc.data.dims[kChannelAxis];
}

// The same bytes, the lanes beyond the last channel counted as channels.
inline Desc in_whole_blocks(const Desc& desc) {
  Desc out = desc;
  out.data.dims[kChannelAxis] = out.data.padded_dims[kChannelAxis];
  return out;
}

// The same bytes, of them only the first `channels` counted; nothing where oneDNN would not pad these to as
// many.
inline std::optional<Desc> with_channels(const Desc& desc, std::int64_t channels) {
  if (channels_of(desc) == channels) return desc;
  const auto& blocking = desc.data.format_desc.blocking;
  std::int64_t block = 1;
  for (int level = 0; level < blocking.inner_nblks; ++level)
    if (blocking.inner_idxs[level] == kChannelAxis) block *= blocking.inner_blks[level];
  if ((channels + block - 1) / block * block != desc.data.padded_dims[kChannelAxis]) return std::nullopt;
  Desc out = desc;
  out.data.dims[kChannelAxis] = channels;
  return out;
}

}  // namespace dlrun::runtime
