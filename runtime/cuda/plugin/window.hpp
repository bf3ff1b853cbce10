// The windows of a pooling over NHWC: its sizes, the pixels of a window, and the windows that reach a pixel.
// Arithmetic alone. 32 bits are enough: a tensor has less than 2^31 packs (check_fits() sees to it), and
// divisions of 64 bits cost more than the memory does.
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

}  // namespace dlrun::cuda
