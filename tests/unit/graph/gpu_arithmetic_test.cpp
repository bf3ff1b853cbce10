// What kernels reckon with, called on the host: where numbers lie, which pixels a window has, activations,
// and the rule of noise. No GPU is needed.
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "runtime/base/keyed_normal.hpp"
#include "runtime/cpu/operators/noise.hpp"
#include "runtime/cuda/plugin/activation.hpp"
#include "runtime/cuda/plugin/image_order.hpp"
#include "runtime/cuda/plugin/window.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

// Two packs a pixel of 5x4 in, windows of 3x3 two apart with a padding of 1: 3x2 of them.
cuda::Sizes padded_windows() {
  DlrunCudaNode node{};
  node.channels = 16, node.in_height = 5, node.in_width = 4, node.height = 3, node.width = 2;
  node.window = 3, node.stride = 2, node.padding = 1;
  return {node, 8};
}

}  // namespace

TEST_CASE("a window's pixels are those of the image that it covers") {
  const cuda::Sizes s = padded_windows();
  std::map<int, int> seen;  // pack of the input: which of the window's pixels
  // Of the second image, the window at row 0 and column 1, second pack: rows -1..1, columns 1..3.
  cuda::for_pixels(s, {1, 0, 1, 1}, [&](int pack, int pixel) { seen[pack] = pixel; });
  const auto at = [&](int row, int column) { return ((1 * 5 + row) * 4 + column) * 2 + 1; };
  CHECK(seen ==
        std::map<int, int>{
            {at(0, 1), 3}, {at(0, 2), 4}, {at(0, 3), 5}, {at(1, 1), 6}, {at(1, 2), 7}, {at(1, 3), 8}});
}

TEST_CASE("a pixel is reached by the windows that have it, as the same of their pixels, the last first") {
  const cuda::Sizes s = padded_windows();
  CHECK(s.packs_in(2) == 80);
  CHECK(s.packs_out(2) == 24);
  using Pair = std::array<int, 3>;  // pack of the input, of the output, which pixel
  std::set<Pair> down, up;
  for (int pack = 0; pack < 24; ++pack)
    cuda::for_pixels(s, cuda::place_out(s, pack), [&](int from, int pixel) {
      down.insert({from, pack, pixel});
    });
  for (int pack = 0; pack < 80; ++pack) {
    int last = 24;
    cuda::for_windows(s, cuda::place_in(s, pack), [&](const cuda::Reach& reach) {
      const cuda::PackPlace place = cuda::place_out(s, reach.pack);
      CHECK((place.row == reach.row && place.column == reach.column));
      CHECK(reach.pack < last);
      last = reach.pack;
      up.insert({pack, reach.pack, reach.pixel});
    });
  }
  CHECK(down.size() > 80);
  CHECK(down == up);
}

TEST_CASE("a voxel is reached by the windows of a volume that have it, as the same of their voxels") {
  // Of 4x5x3 voxels, windows of 3x3x3 two apart with a padding of 1: 2x3x2 of them.
  DlrunCudaNode node{};
  node.channels = 16, node.in_depth = 4, node.in_height = 4 * 5, node.in_width = 3;
  node.depth = 2, node.height = 2 * 3, node.width = 2, node.window = 3, node.stride = 2, node.padding = 1;
  const cuda::VolumeSizes s(node, 8);
  CHECK(s.packs_in(2) == 2 * 4 * 5 * 3 * 2);
  CHECK(s.packs_out(2) == 2 * 2 * 3 * 2 * 2);
  std::map<int, int> seen;  // pack of the input: which of the window's voxels
  // Of the second volume the window at plane 1, row 0, column 1, first pack: planes 1..3, rows -1..1, columns
  // 1..3.
  cuda::for_pixels(s, {1, 1, 0, 1, 0}, [&](int pack, int voxel) { seen[pack] = voxel; });
  const auto at = [](int plane, int row, int column) { return (((4 + plane) * 5 + row) * 3 + column) * 2; };
  std::map<int, int> wanted;
  for (int z = 0; z < 3; ++z)
    for (int y = 1; y < 3; ++y)
      for (int x = 0; x < 2; ++x) wanted[at(1 + z, y - 1, 1 + x)] = (z * 3 + y) * 3 + x;
  CHECK(seen == wanted);
  std::set<std::array<int, 3>> down, up;  // pack of the input, of the output, which voxel
  for (int pack = 0; pack < s.packs_out(2); ++pack)
    cuda::for_pixels(s, cuda::place_out(s, pack), [&](int from, int voxel) {
      down.insert({from, pack, voxel});
    });
  for (int pack = 0; pack < s.packs_in(2); ++pack)
    cuda::for_windows(s, cuda::place_in(s, pack), [&](const cuda::VolumeReach& reach) {
      const cuda::VolumePlace place = cuda::place_out(s, reach.pack);
      CHECK((place.plane == reach.plane && place.row == reach.row && place.column == reach.column));
      up.insert({pack, reach.pack, reach.pixel});
    });
  CHECK(down == up);
}

TEST_CASE("an image's places in the plain order") {
  // Two images of three channels and two pixels: r0 g0 b0 r1 g1 b1 on the device, r0 r1 g0 g1 b0 b1 plain.
  const cuda::ImageOrder order{3, 2};
  const std::vector<std::int64_t> wanted{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};
  for (std::size_t place = 0; place < wanted.size(); ++place)
    CHECK(order.plain(static_cast<std::int64_t>(place)) == wanted[place]);
}

TEST_CASE("activations on a GPU, and what passes back through them") {
  CHECK(cuda::Relu{}.of(-2) == 0);
  CHECK(cuda::Relu{}.of(2) == 2);
  CHECK(cuda::Relu{}.back(3, 0) == 0);
  CHECK(cuda::Relu{}.back(3, 2) == 3);
  CHECK(cuda::LeakyRelu{0.25F}.of(-2) == -0.5F);
  CHECK(cuda::LeakyRelu{0.25F}.of(2) == 2);
  CHECK(cuda::LeakyRelu{0.25F}.back(4, -0.5F) == 1);
  CHECK(cuda::LeakyRelu{0.25F}.back(4, 2) == 4);
  CHECK(cuda::Tanh{}.of(0.5F) == doctest::Approx(std::tanh(0.5)));
  CHECK(cuda::Tanh{}.back(2, 0.5F) == 1.5F);
}

TEST_CASE("a noise node's numbers are told from the key of the step, the sample and the place alone") {
  const EngineOptions options{.batch = 4, .seed = 9, .rank = 2};
  std::vector<float> drawn(5);
  draw_noise(drawn, options, 17, 3);
  const std::uint64_t key = with_part(noise_key(options, 17), 2 * 4 + 3);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const UniformPair of = uniform_pair(key, i);
    CHECK(drawn[i] ==
          static_cast<float>(std::sqrt(-2 * std::log(of.radius)) * std::cos(kFullTurn * of.turn)));
  }
}
