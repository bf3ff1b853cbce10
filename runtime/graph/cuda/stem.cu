// A model's first convolution on images of few channels in bf16: 7x7 with stride 2 on 3 channels has too few
// channels for matrix units. Four pixels of a 2x2 square become the channels of one (space to depth), which
// makes it a convolution of stride 1 with a quarter of the pixels, read straight from what the host filled. A
// tap that the original has not is zero, and its gradient is dropped.
#include "runtime/graph/cuda/passes.hpp"

namespace dlrun::cuda {
namespace {

constexpr std::int64_t kStride = 2;

// y[o] = sum of x[2 o + k - p] w[k]. With k + lead = 2 a + b, lead making p + lead = 2 q even, that is the
// sum over a and b of z[o + a - q][b] w[a][b], where z[r][b] = x[2 r + b].
struct Layout {
  std::int64_t image_channels, image_height, image_width;
  std::int64_t filters, window, lead, before, taps;  // before: q
  std::int64_t rows, columns, channels;              // of z with its margin, channels padded to 8

  explicit Layout(const DlrunCudaNode& node)
      : image_channels(node.in_channels),
        image_height(node.in_height),
        image_width(node.in_width),
        filters(node.channels),
        window(node.window),
        lead(node.padding % kStride),
        before((node.padding + lead) / kStride),
        taps((node.window + lead + kStride - 1) / kStride),
        rows(node.height + taps - 1),
        columns(node.width + taps - 1),
        channels((node.in_channels * kStride * kStride + 7) / 8 * 8) {}
  std::int64_t pixels() const { return rows * columns; }
  std::int64_t weights() const { return filters * taps * taps * channels; }
};

struct alignas(16) Eight {
  Bf16 of[8];
};

void arrange(Device& device, Eight* to, const Layout& s) {
  const float* image = device.input;
  const std::int64_t packs = s.channels / 8;
  for_each(device.stream, device.batch * s.pixels() * packs, [=] __device__(std::int64_t wide) {
    const int i = static_cast<int>(wide), pack = i % static_cast<int>(packs),
              pixel = i / static_cast<int>(packs);
    const int column = pixel % static_cast<int>(s.columns), row = pixel / static_cast<int>(s.columns);
    const int y = row % static_cast<int>(s.rows) - static_cast<int>(s.before);
    const std::int64_t number_of_image = row / static_cast<int>(s.rows);
    const int x = column - static_cast<int>(s.before);
    Eight out;
    for (int k = 0; k < 8; ++k) {
      const int place = pack * 8 + k, of_square = place / static_cast<int>(s.image_channels);
      const int v = 2 * y + of_square / 2, u = 2 * x + of_square % 2;
      const bool inside = of_square < 4 && v >= 0 && u >= 0 && v < s.image_height && u < s.image_width;
      const std::int64_t plane =
          number_of_image * s.image_channels + place % static_cast<int>(s.image_channels);
      put(out.of[k], inside ? image[(plane * s.image_height + v) * s.image_width + u] : 0.0F);
    }
    to[i] = out;
  });
}

// Where the tap `i` of the arranged weights is in the original's (filters x window x window x channels), or
// -1.
__device__ inline std::int64_t original(const Layout& s, std::int64_t i) {
  const std::int64_t place = i % s.channels, of_square = place / s.image_channels;
  const std::int64_t right = i / s.channels % s.taps, down = i / s.channels / s.taps % s.taps;
  const std::int64_t filter = i / s.channels / s.taps / s.taps;
  const std::int64_t y = kStride * down + of_square / kStride - s.lead;
  const std::int64_t x = kStride * right + of_square % kStride - s.lead;
  if (of_square >= kStride * kStride || y < 0 || x < 0 || y >= s.window || x >= s.window) return -1;
  return ((filter * s.window + y) * s.window + x) * s.image_channels + place % s.image_channels;
}

class Stem final : public Operator {
 public:
  Stem(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node),
        out_(index),
        layout_(node),
        image_(room(device, device.batch * layout_.pixels() * layout_.channels)),
        weights_(room(device, layout_.weights())),
        slopes_(room(device, layout_.weights())),
        passes_(device, geometry(), arrays(device)) {}

  void forward(Device& device, Mode) override {
    arrange(device, static_cast<Eight*>(image_), layout_);
    take_weights(device);
    passes_.forward(device, image_, weights_, device.tensors[out_].value);
  }
  void backward(Device& device) override {
    passes_.weights(device, image_, device.tensors[out_].gradient, slopes_);
    leave_slopes(device);
  }

  void take_weights(Device& device) {
    const Bf16* from = device.copies + node_.weight;
    Bf16* to = static_cast<Bf16*>(weights_);
    for_each(device.stream, layout_.weights(), [=, s = layout_] __device__(std::int64_t i) {
      const std::int64_t at = original(s, i);
      to[i] = at < 0 ? Bf16(0.0F) : from[at];
    });
  }
  void leave_slopes(Device& device) {
    const Bf16* from = static_cast<const Bf16*>(slopes_);
    float* to = device.gradients + node_.weight;
    for_each(device.stream, layout_.weights(), [=, s = layout_] __device__(std::int64_t i) {
      if (const std::int64_t at = original(s, i); at >= 0) to[at] = number(from[i]);
    });
  }

 private:
  static void* room(Device& device, std::int64_t numbers) {
    return device.memory.device(static_cast<std::size_t>(numbers) * sizeof(Bf16), "the first convolution");
  }
  Geometry geometry() const {
    return {layout_.channels,
            layout_.rows,
            layout_.columns,
            node_.channels,
            node_.height,
            node_.width,
            layout_.taps,
            1,
            0};
  }
  Passes::Arrays arrays(const Device& device) const {
    const Tensor& out = device.tensors[out_];
    return {image_, weights_, out.value, out.gradient, slopes_, nullptr};
  }

  DlrunCudaNode node_;
  std::size_t out_;
  Layout layout_;
  void *image_, *weights_, *slopes_;
  Passes passes_;
};

}  // namespace

bool is_stem(const Device& device, const DlrunCudaPlan& plan, const DlrunCudaNode& node) {
  if (node.kind != DLRUN_CUDA_CONVOLUTION || !device.half()) return false;
  if (plan.nodes[node.inputs[0]].kind != DLRUN_CUDA_INPUT) return false;
  if (node.stride != kStride || node.window < 3 || node.in_channels > 4) return false;
  if (node.bias != DLRUN_CUDA_NOWHERE || node.relu != 0) return false;
  return device.batch * Layout(node).pixels() * 2 < INT32_MAX;
}

Made make_stem(Device& device, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<Stem>(device, node, index);
}

}  // namespace dlrun::cuda
