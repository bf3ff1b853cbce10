// A model's first convolution on images of few channels in bf16: 7x7 with stride 2 on 3 channels has too few
// channels for matrix units. Four pixels of a 2x2 square become the channels of one (space to depth), which
// makes it a convolution of stride 1 with a quarter of the pixels; its columns become channels as well. It is
// read straight from what the host filled. A tap that the original has not is zero, and its gradient is
// dropped.
#include "runtime/cuda/plugin/bias.hpp"
#include "runtime/cuda/plugin/convolution_passes.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kStride = 2, kImage = 3;  // channels of an image
constexpr int kSquare = kStride * kStride * kImage;

// y[o] = sum of x[2 o + k - p] w[k]. With k + lead = 2 a + b, lead making p + lead = 2 q even, that is the
// sum over a and b of z[o + a - q][b] w[a][b], where z[r][b] = x[2 r + b]: so along rows, whose taps a remain
// a window. Along columns the taps become channels as well: a pixel holds the squares that its output pixel
// reads.
struct Layout {
  int image_height, image_width, window, lead, before, taps;  // before: q
  int rows, columns;                                          // of the arranged image, margins included
  std::int64_t filters;

  explicit Layout(const DlrunCudaNode& node)
      : image_height(static_cast<int>(node.in_height)),
        image_width(static_cast<int>(node.in_width)),
        window(static_cast<int>(node.window)),
        lead(static_cast<int>(node.padding) % kStride),
        before((static_cast<int>(node.padding) + lead) / kStride),
        taps((window + lead + kStride - 1) / kStride),
        rows(static_cast<int>(node.height) + taps - 1),
        columns(static_cast<int>(node.width)),
        filters(node.channels) {}
  __host__ __device__ int channels() const { return taps * kSquare; }
  std::int64_t pixels() const { return std::int64_t{rows} * columns; }
  std::int64_t weights() const { return filters * taps * channels(); }
};

struct alignas(16) Eight {
  Bf16 of[8];
};

// One thread per pixel.
template <int TAPS>
void arrange(Device& device, Eight* to, const Layout& s) {
  const Rows image = device.input;
  for_each(device.stream, device.batch * s.pixels(), [=] __device__(std::int64_t wide) {
    const int i = static_cast<int>(wide), column = i % s.columns, row = i / s.columns % s.rows;
    const std::int64_t plane = static_cast<std::int64_t>(i / s.columns / s.rows) * kImage;
    constexpr int kChannels = TAPS * kSquare;
    union {
      Bf16 of[kChannels];
      Eight packs[kChannels / 8];
    } out;
#pragma unroll
    for (int k = 0; k < kChannels; ++k) {
      const int channel = k % kImage, of_square = k / kImage % (kStride * kStride), tap = k / kSquare;
      const int v = kStride * (row - s.before) + of_square / kStride;
      const int u = kStride * (column + tap - s.before) + of_square % kStride;
      const bool inside = v >= 0 && u >= 0 && v < s.image_height && u < s.image_width;
      put(out.of[k],
          inside ? image.at(((plane + channel) * s.image_height + v) * s.image_width + u, channel) : 0.0F);
    }
#pragma unroll
    for (int pack = 0; pack < kChannels / 8; ++pack) to[wide * (kChannels / 8) + pack] = out.packs[pack];
  });
}

// Where the number `i` of the arranged weights is in the original's (filters x window x window x channels),
// or -1.
__device__ inline std::int64_t original(const Layout& s, std::int64_t i) {
  const int place = static_cast<int>(i % s.channels()), of_square = place / kImage % (kStride * kStride);
  const int down = static_cast<int>(i / s.channels() % s.taps), right = place / kSquare;
  const std::int64_t filter = i / s.channels() / s.taps;
  const int y = kStride * down + of_square / kStride - s.lead,
            x = kStride * right + of_square % kStride - s.lead;
  if (y < 0 || x < 0 || y >= s.window || x >= s.window) return -1;
  return ((filter * s.window + y) * s.window + x) * kImage + place % kImage;
}

class Stem final : public Operator {
 public:
  Stem(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node),
        out_(index),
        layout_(node),
        image_(workspace(device, device.batch * layout_.pixels() * layout_.channels())),
        weights_(workspace(device, layout_.weights())),
        grads_(node.learning == DLRUN_CUDA_FROZEN ? nullptr : workspace(device, layout_.weights())),
        passes_(device, geometry(), arrays(device)) {}

  void forward(Device& device, Mode) override {
    if (layout_.taps == 4)
      arrange<4>(device, static_cast<Eight*>(image_), layout_);
    else
      arrange<2>(device, static_cast<Eight*>(image_), layout_);
    take_weights(device);
    passes_.forward(device, image_, weights_, device.tensors[out_].value);
    add_bias(device, node_, device.tensors[out_]);
  }
  void backward(Device& device) override {
    bias_backward(device, node_, device.tensors[out_]);
    join_side(device);
    if (grads_ == nullptr) return;
    fork_side(device);
    passes_.weights(device.side, image_, device.tensors[out_].gradient, grads_, Passes::Into::fresh);
    join_side(device);
    leave_gradients(device);
  }

  void take_weights(Device& device) {
    const Bf16* from = device.copies + node_.weight;
    Bf16* to = static_cast<Bf16*>(weights_);
    for_each(device.stream, layout_.weights(), [=, s = layout_] __device__(std::int64_t i) {
      const std::int64_t at = original(s, i);
      to[i] = at < 0 ? Bf16(0.0F) : from[at];
    });
  }
  void leave_gradients(Device& device) {
    const Bf16* from = static_cast<const Bf16*>(grads_);
    float* to = device.gradients + node_.weight;
    const bool adds = node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE;
    for_each(device.stream, layout_.weights(), [=, s = layout_] __device__(std::int64_t i) {
      if (const std::int64_t at = original(s, i); at >= 0) to[at] = (adds ? to[at] : 0.0F) + number(from[i]);
    });
  }

 private:
  static void* workspace(Device& device, std::int64_t numbers) {
    return device.memory.device(static_cast<std::size_t>(numbers) * sizeof(Bf16), "the first convolution");
  }
  Geometry geometry() const {
    return {layout_.channels(),
            layout_.rows,
            layout_.columns,
            node_.channels,
            node_.height,
            node_.width,
            layout_.taps,
            1,
            1,
            0,
            0};
  }
  Passes::Arrays arrays(const Device& device) const {
    const Tensor& out = device.tensors[out_];
    return {image_, weights_, out.value, out.gradient, grads_, nullptr};
  }

  DlrunCudaNode node_;
  std::size_t out_;
  Layout layout_;
  void *image_, *weights_, *grads_;
  Passes passes_;
};

}  // namespace

bool is_stem(const Device& device, const DlrunCudaPlan& plan, const DlrunCudaNode& node) {
  if (node.kind != std::string_view("convolution") || !device.half()) return false;
  if (plan.nodes[node.inputs[0]].kind != std::string_view("input")) return false;
  if (node.stride != kStride || node.window < 3 || node.in_channels != kImage || node.in_depth != 0)
    return false;
  const Layout layout(node);
  return (layout.taps == 2 || layout.taps == 4) && device.batch * layout.pixels() < INT32_MAX;
}

OperatorPtr make_stem(Device& device, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<Stem>(device, node, index);
}

}  // namespace dlrun::cuda
