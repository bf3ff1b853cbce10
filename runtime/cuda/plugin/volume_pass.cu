// See volume_pass.hpp.
#include "runtime/cuda/plugin/volume_pass.hpp"

namespace dlrun::cuda {
namespace {

constexpr std::size_t kEngines = 8;  // as many as are timed
// An engine that needs more workspace is taken where it needs less than this share of the time.
constexpr float kClearly = 0.95F;

// Memory is cleared on another stream.
void reserve(Stream& stream, Memory& memory, std::size_t workspace, std::size_t filters) {
  stream.workspace = memory.device(workspace, "timing convolutions");
  stream.planes = memory.device(filters, "timing convolutions");
  check(cudaStreamSynchronize(nullptr), "clearing memory");
}

// NDHWC with so many channels, as cuDNN counts axes: channels second.
DnnGraph::Shape channels_last(std::int64_t batch, std::int64_t channels, std::int64_t depth,
                              std::int64_t height, std::int64_t width) {
  const std::int64_t row = width * channels, plane = height * row;
  return {{batch, channels, depth, height, width}, {depth * plane, 1, plane, row, channels}};
}

template <class T>
void turn_as(cudaStream_t stream, const T* from, T* to, std::int64_t filters, std::int64_t outer,
             std::int64_t inner, std::int64_t channels) {
  for_each(stream, filters * outer * inner * channels, [=] __device__(std::int64_t i) {
    const std::int64_t channel = i % channels, place = i / channels, filter = place / (outer * inner);
    const std::int64_t there = place % (outer * inner), by_outer = there % outer, by_inner = there / outer;
    to[i] = from[((filter * outer + by_outer) * inner + by_inner) * channels + channel];
  });
}

}  // namespace

VolumePass::VolumePass(const Device& device, const Geometry& g, Pass pass)
    : half_(device.half()), geometry_(g), pass_(pass), name_(g.text()) {
  const cudnnDataType_t type = half_ ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const auto tensor = [&](const DnnGraph::Shape& shape) {
    return graph_.tensor(shape, type, DnnGraph::Kept::in_memory);
  };
  x_ = tensor(channels_last(device.batch, g.in_channels, g.planes.in, g.in_height, g.in_width));
  w_ = tensor(channels_last(g.channels, g.in_channels, g.planes.window, g.window, g.window_width));
  y_ = tensor(channels_last(device.batch, g.channels, g.planes.out, g.height, g.width));
  graph_.convolution(pass, {3, g.stride, g.padding}, x_, w_, y_);
}

std::size_t VolumePass::filter_bytes() const {
  return static_cast<std::size_t>(geometry_.weights()) * (half_ ? sizeof(Bf16) : sizeof(float));
}

bool VolumePass::choose(const Device& device, const Stream& on, const Arrays& arrays, std::size_t limit) {
  const auto arithmetic =
      device.precision == DLRUN_CUDA_F32 ? DnnGraph::Arithmetic::plain : DnnGraph::Arithmetic::any;
  if (!graph_.build(on.dnn, {arithmetic, limit, kEngines})) return false;
  std::optional<std::size_t> best;
  std::size_t best_bytes = 0;
  for (std::size_t engine = 0; engine < graph_.engines(); ++engine) {
    graph_.choose(engine);
    Memory scratch;
    Stream stream = on;
    try {
      reserve(stream, scratch, graph_.workspace_bytes(), filter_bytes());
    } catch (const Failure&) {
      if (device.by_shape) throw;  // every rank is to take the same
      continue;                    // others need less
    }
    if (try_run(stream, arrays) != CUDNN_STATUS_SUCCESS) continue;
    if (cudaStreamSynchronize(stream.stream) != cudaSuccess)
      throw Failure(name_ + " failed while it was tried");
    if (device.by_shape) return true;
    const float time = milliseconds_of(stream.stream, [&] { run(stream, arrays); });
    const bool needs_more = graph_.workspace_bytes() > best_bytes;
    if (best && time >= milliseconds_ * (needs_more ? kClearly : 1.0F)) continue;
    best = engine, best_bytes = graph_.workspace_bytes(), milliseconds_ = time;
  }
  if (best) graph_.choose(*best);
  return best.has_value();
}

void VolumePass::turn(cudaStream_t stream, const void* from, void* to, std::int64_t outer,
                      std::int64_t inner) const {
  const Geometry& g = geometry_;
  if (half_)
    turn_as(stream, static_cast<const Bf16*>(from), static_cast<Bf16*>(to), g.channels, outer, inner,
            g.in_channels);
  else
    turn_as(stream, static_cast<const float*>(from), static_cast<float*>(to), g.channels, outer, inner,
            g.in_channels);
}

cudnnStatus_t VolumePass::try_run(const Stream& stream, const Arrays& arrays) const {
  const std::int64_t planes = geometry_.planes.window, pixels = geometry_.window * geometry_.window_width;
  if (pass_ != Pass::filters) turn(stream.stream, arrays.w, stream.planes, pixels, planes);
  const cudnnStatus_t status =
      graph_.try_run(stream, {{x_, arrays.x}, {w_, stream.planes}, {y_, arrays.y}}, stream.workspace);
  if (pass_ == Pass::filters) turn(stream.stream, stream.planes, arrays.dw, planes, pixels);
  return status;
}

void VolumePass::run(const Stream& stream, const Arrays& arrays) const {
  check(try_run(stream, arrays), name_);
}

}  // namespace dlrun::cuda
