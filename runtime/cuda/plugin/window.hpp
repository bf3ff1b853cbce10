// The windows of a pooling over NHWC or, for volumes, NDHWC: its sizes, the pixels of a window, and the
// windows that reach a pixel. Arithmetic alone. 32 bits are enough: a tensor has less than 2^31 packs
// (check_fits() sees to it), and divisions of 64 bits cost more than the memory does.
#pragma once

#include <cstdint>

#include "runtime/cuda/plugin/host_device.hpp"
#include "runtime/cuda/table.h"

namespace dlrun::cuda {

struct Sizes {
  int groups, in_height, in_width, height, width, window, stride, padding;  // groups: packs of a pixel
  Sizes(const DlrunCudaNode& node, int vector)
      : groups(static_cast<int>(node.channels) / vector),
        in_height(static_cast<int>(node.in_height)),
        in_width(static_cast<int>(node.in_width)),
        height(static_cast<int>(node.height)),
        width(static_cast<int>(node.width)),
        window(static_cast<int>(node.window)),
        stride(static_cast<int>(node.stride)),
        padding(static_cast<int>(node.padding)) {}
  // Whether every pixel is in one window.
  bool tiles() const {
    return window == stride && padding == 0 && in_height == height * window && in_width == width * window;
  }
  std::int64_t packs_in(std::int64_t batch) const { return batch * in_height * in_width * groups; }
  std::int64_t packs_out(std::int64_t batch) const { return batch * height * width * groups; }
};

// Where a pack is: its image, row and column there, and which of its pixel's packs it is.
struct PackPlace {
  int image, row, column, group;
};
DLRUN_HOST_DEVICE inline PackPlace place_of(int pack, int height, int width, int groups) {
  return {pack / groups / width / height, pack / groups / width % height, pack / groups % width,
          pack % groups};
}
DLRUN_HOST_DEVICE inline PackPlace place_in(const Sizes& s, int pack) {
  return place_of(pack, s.in_height, s.in_width, s.groups);
}
DLRUN_HOST_DEVICE inline PackPlace place_out(const Sizes& s, int pack) {
  return place_of(pack, s.height, s.width, s.groups);
}

// body(pack of the input, which of the window's pixels it is) for the pixels of a window that the image has.
template <class Body>
DLRUN_HOST_DEVICE void for_pixels(const Sizes& s, const PackPlace& window, const Body& body) {
  for (int y = 0; y < s.window; ++y)
    for (int x = 0; x < s.window; ++x) {
      const int v = window.row * s.stride - s.padding + y, u = window.column * s.stride - s.padding + x;
      if (v < 0 || u < 0 || v >= s.in_height || u >= s.in_width) continue;
      body(((window.image * s.in_height + v) * s.in_width + u) * s.groups + window.group, y * s.window + x);
    }
}

// A window that reaches a pixel.
struct Reach {
  int pack;         // of the output
  int row, column;  // of the window
  int pixel;        // which of the window's pixels it is
};
// body(reach) for all of them, the last first.
template <class Body>
DLRUN_HOST_DEVICE void for_windows(const Sizes& s, const PackPlace& pixel, const Body& body) {
  const int below = pixel.row + s.padding, right = pixel.column + s.padding;
  const int last_row = below / s.stride < s.height ? below / s.stride : s.height - 1;
  const int last_column = right / s.stride < s.width ? right / s.stride : s.width - 1;
  for (int row = last_row; row >= 0 && below - row * s.stride < s.window; --row)
    for (int column = last_column; column >= 0 && right - column * s.stride < s.window; --column)
      body(Reach{((pixel.image * s.height + row) * s.width + column) * s.groups + pixel.group, row, column,
                 (below - row * s.stride) * s.window + right - column * s.stride});
}

// The same over volumes, whose windows are cubes and whose pixels are voxels.
struct VolumeSizes {
  int groups, in_depth, in_height, in_width, depth, height, width, window, stride, padding;
  VolumeSizes(const DlrunCudaNode& node, int vector)
      : groups(static_cast<int>(node.channels) / vector),
        in_depth(static_cast<int>(node.in_depth)),
        in_height(static_cast<int>(node.in_height / node.in_depth)),
        in_width(static_cast<int>(node.in_width)),
        depth(static_cast<int>(node.depth)),
        height(static_cast<int>(node.height / node.depth)),
        width(static_cast<int>(node.width)),
        window(static_cast<int>(node.window)),
        stride(static_cast<int>(node.stride)),
        padding(static_cast<int>(node.padding)) {}
  bool tiles() const {
    return window == stride && padding == 0 && in_depth == depth * window && in_height == height * window &&
           in_width == width * window;
  }
  std::int64_t packs_in(std::int64_t batch) const { return batch * in_depth * in_height * in_width * groups; }
  std::int64_t packs_out(std::int64_t batch) const { return batch * depth * height * width * groups; }
};

struct VolumePlace {
  int volume, plane, row, column, group;
};
DLRUN_HOST_DEVICE inline VolumePlace place_of(int pack, int depth, int height, int width, int groups) {
  const PackPlace place = place_of(pack, height, width, groups);  // of all planes one behind the other
  return {place.image / depth, place.image % depth, place.row, place.column, place.group};
}
DLRUN_HOST_DEVICE inline VolumePlace place_in(const VolumeSizes& s, int pack) {
  return place_of(pack, s.in_depth, s.in_height, s.in_width, s.groups);
}
DLRUN_HOST_DEVICE inline VolumePlace place_out(const VolumeSizes& s, int pack) {
  return place_of(pack, s.depth, s.height, s.width, s.groups);
}

template <class Body>
DLRUN_HOST_DEVICE void for_pixels(const VolumeSizes& s, const VolumePlace& window, const Body& body) {
  for (int z = 0; z < s.window; ++z) {
    const int plane = window.plane * s.stride - s.padding + z;
    if (plane < 0 || plane >= s.in_depth) continue;
    for (int y = 0; y < s.window; ++y)
      for (int x = 0; x < s.window; ++x) {
        const int v = window.row * s.stride - s.padding + y, u = window.column * s.stride - s.padding + x;
        if (v < 0 || u < 0 || v >= s.in_height || u >= s.in_width) continue;
        const int row = (window.volume * s.in_depth + plane) * s.in_height + v;
        body((row * s.in_width + u) * s.groups + window.group, (z * s.window + y) * s.window + x);
      }
  }
}

struct VolumeReach {
  int pack;
  int plane, row, column;
  int pixel;
};
template <class Body>
DLRUN_HOST_DEVICE void for_windows(const VolumeSizes& s, const VolumePlace& voxel, const Body& body) {
  const int behind = voxel.plane + s.padding, below = voxel.row + s.padding, right = voxel.column + s.padding;
  const int last_plane = behind / s.stride < s.depth ? behind / s.stride : s.depth - 1;
  const int last_row = below / s.stride < s.height ? below / s.stride : s.height - 1;
  const int last_column = right / s.stride < s.width ? right / s.stride : s.width - 1;
  for (int plane = last_plane; plane >= 0 && behind - plane * s.stride < s.window; --plane)
    for (int row = last_row; row >= 0 && below - row * s.stride < s.window; --row)
      for (int column = last_column; column >= 0 && right - column * s.stride < s.window; --column) {
        const int z = behind - plane * s.stride, y = below - row * s.stride, x = right - column * s.stride;
        const int rows = (voxel.volume * s.depth + plane) * s.height + row;
        body(VolumeReach{(rows * s.width + column) * s.groups + voxel.group, plane, row, column,
                         (z * s.window + y) * s.window + x});
      }
}

// body(the sizes of the node's windows).
template <class Body>
void by_sizes(const DlrunCudaNode& node, int vector, const Body& body) {
  if (node.in_depth != 0)
    body(VolumeSizes(node, vector));
  else
    body(Sizes(node, vector));
}

}  // namespace dlrun::cuda
