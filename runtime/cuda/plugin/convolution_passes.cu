// See passes.hpp. f32 means f32: no TF32 unless it is asked for; where it is, timing chooses.
#include <algorithm>

#include "runtime/cuda/plugin/volume_pass.hpp"

namespace dlrun::cuda {
namespace {

// Workspace that a pass may have, and what share of the device's memory it may have where it has no form in
// that: both are the same in every run on a device.
constexpr std::size_t kWorkspace = std::size_t{512} << 20;
constexpr std::size_t kShare = 16;
// A product takes a pass from cuDNN where it needs less than this share of the time: a near tie is to end in
// the same way in every run.
constexpr float kClearly = 0.98F;
const float kOne = 1, kZero = 0;

cudnnMathType_t math_of(const Device& device) {
  return device.precision == DLRUN_CUDA_F32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;
}
bool fits(const Device& device, cudnnMathType_t math) {
  return device.precision == DLRUN_CUDA_TF32 ? math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION
                                             : math == math_of(device);
}

// What counts of what a pass finds where it writes.
const float& prior(Passes::Into into) {
  return into == Passes::Into::sum ? kOne : kZero;
}

// Which passes there are, for the table of what was found.
std::string prepared(const Passes::Arrays& arrays) {
  return std::string(arrays.forward() ? " forward" : "") +
         (!arrays.weights()                            ? ""
          : arrays.weights_into == Passes::Into::fresh ? " weights"
                                                       : " weights to a sum") +
         (!arrays.data()                       ? ""
          : arrays.into == Passes::Into::fresh ? " data"
                                               : " data to a sum");
}

template <class Algorithm>
struct Fastest {
  Algorithm by;
  float milliseconds = INFINITY;  // so where there is none
  std::size_t bytes = 0;          // of workspace
};

std::size_t most_workspace() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the GPU's memory");
  return std::max(kWorkspace, total / kShare);
}

const char* const kTiming = "timing convolutions";

// Times run(algorithm) for every candidate; the fastest, in `scratch`. Where nothing is to depend on time:
// the first one, which the library expects to be the fastest.
template <class Candidate, class Run>
auto fastest(Device& device, const std::vector<Candidate>& candidates, int count, const std::string& what,
             Scratch& scratch, const Run& run) {
  Fastest<decltype(candidates[0].algo)> best{candidates[0].algo};
  const auto try_all = [&](std::size_t limit, const auto& allowed) {
    for (int i = 0; i < count; ++i) {
      const Candidate& candidate = candidates[static_cast<std::size_t>(i)];
      if (device.by_shape && best.milliseconds == 0) return;
      if (candidate.status != CUDNN_STATUS_SUCCESS || candidate.determinism != CUDNN_DETERMINISTIC ||
          !allowed(candidate.mathType) || candidate.memory > limit)
        continue;
      scratch.of(candidate.memory, kTiming);
      if (run(candidate.algo) != CUDNN_STATUS_SUCCESS)
        continue;  // plainly first: libraries load what they need
      const float time =
          device.by_shape ? 0 : milliseconds_of(device.stream, [&] { check(run(candidate.algo), what); });
      if (time < best.milliseconds) best = {candidate.algo, time, candidate.memory};
    }
  };
  for (const std::size_t limit : {kWorkspace, most_workspace()}) {
    if (best.milliseconds != INFINITY) break;
    try_all(limit, [&](cudnnMathType_t math) { return fits(device, math); });
    // A shape may have no form for matrix units, such as one filter; in bf16 any other is as exact.
    if (best.milliseconds == INFINITY && device.half())
      try_all(limit, [](cudnnMathType_t math) { return math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION; });
  }
  return best;
}

void raise(std::size_t& bytes, std::size_t wanted) {
  bytes = std::max(bytes, wanted);
}

// A form of the product that is clearly faster than what needs `milliseconds`; where nothing is to depend on
// time, the one that the library expects to be the fastest. That one is asked for gradients of weights alone:
// of the shapes of ResNet-50 on an H200, cuDNN takes 0.286 ms forward and 0.422 ms for the data where
// cuBLASLt takes 0.297 and 0.434 ms, but 0.322 ms for the weights where it takes 0.306 ms. `scratch` is for
// the timing.
std::optional<cublasLtMatmulAlgo_t> faster(Device& device, const Product& product,
                                           const Product::Matrices& matrices, const float& prior,
                                           float milliseconds, Scratch& scratch, std::size_t& bytes) {
  Stream stream = device.main;
  stream.workspace = scratch.of(Product::kWorkspace, kTiming), stream.workspace_bytes = Product::kWorkspace;
  std::optional<cublasLtMatmulAlgo_t> best;
  float best_time = milliseconds * kClearly;
  std::size_t best_bytes = 0;
  for (const cublasLtMatmulHeuristicResult_t& candidate : product.candidates(stream)) {
    const auto run = [&] { return product.run(stream, candidate.algo, matrices, prior); };
    if (run() != CUBLAS_STATUS_SUCCESS) continue;
    if (device.by_shape) {
      bytes = candidate.workspaceSize > bytes ? candidate.workspaceSize : bytes;
      return candidate.algo;
    }
    const float time = milliseconds_of(stream.stream, [&] { check(run(), "a product"); });
    if (time < best_time) best_time = time, best = candidate.algo, best_bytes = candidate.workspaceSize;
  }
  if (best_bytes > bytes) bytes = best_bytes;
  return best;
}

// Whether every pass is a product: a pixel of the output is of one pixel of the input. Filters of every group
// must begin where a product's matrix may.
bool is_product(const Device& device, const Geometry& g) {
  const auto filters = static_cast<std::size_t>(g.channels * g.in_channels);
  return g.window == 1 && g.window_width == 1 && g.stride == 1 && g.padding == 0 && g.padding_width == 0 &&
         g.planes.window == 1 && filters * device.size() % Product::kAlignment == 0;
}

}  // namespace

Geometry Geometry::of(const DlrunCudaNode& node) {
  const Planes planes = Planes::of(node);
  return {node.in_channels, node.in_height / planes.in, node.in_width,
          node.channels,    node.height / planes.out,   node.width,
          node.window,      node.window_width,          node.stride,
          node.padding,     node.padding_width,         planes};
}

Geometry Geometry::turned(const DlrunCudaNode& node) {
  return {node.channels, node.height,       node.width,  node.in_channels, node.in_height,     node.in_width,
          node.window,   node.window_width, node.stride, node.padding,     node.padding_width, Planes{}};
}

std::string Geometry::text() const {
  return "a convolution of " + std::to_string(in_channels) + "x" + std::to_string(in_height) + "x" +
         std::to_string(in_width) + " to " + std::to_string(channels) + " filters of " +
         std::to_string(window) + "x" + std::to_string(window_width) + " stride " + std::to_string(stride) +
         " padding " + std::to_string(padding) + "x" + std::to_string(padding_width) + planes.text();
}

Passes::Passes(Device& device, const Geometry& geometry, const Arrays& arrays)
    : geometry_(geometry),
      name_(geometry.text()),
      depth_(device, geometry.planes, geometry.in_height * geometry.in_width, geometry.in_channels) {
  describe(device, geometry);
  if (is_product(device, geometry)) describe_products(device, geometry);
  const std::string key = name_ + prepared(arrays);
  if (const auto known = device.algorithms.find(key); known != device.algorithms.end())
    by_ = known->second;
  else
    choose(device, arrays);
  device.algorithms.emplace(key, by_);
  reserve(device, arrays);
}

Passes::~Passes() {
  if (conv_ != nullptr) cudnnDestroyConvolutionDescriptor(conv_);
  if (w_ != nullptr) cudnnDestroyFilterDescriptor(w_);
  if (y_ != nullptr) cudnnDestroyTensorDescriptor(y_);
  if (x_ != nullptr) cudnnDestroyTensorDescriptor(x_);
}

void Passes::describe(Device& device, const Geometry& g) {
  const cudnnDataType_t type = device.half() ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const auto n = [](std::int64_t value) { return static_cast<int>(value); };
  check(cudnnCreateTensorDescriptor(&x_), name_);
  check(cudnnCreateTensorDescriptor(&y_), name_);
  check(cudnnCreateFilterDescriptor(&w_), name_);
  check(cudnnCreateConvolutionDescriptor(&conv_), name_);
  const int images = n(device.batch * g.planes.out), in_channels = n(depth_.image_channels());
  check(cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NHWC, type, images, in_channels, n(g.in_height),
                                   n(g.in_width)),
        name_);
  check(
      cudnnSetTensor4dDescriptor(y_, CUDNN_TENSOR_NHWC, type, images, n(g.channels), n(g.height), n(g.width)),
      name_);
  check(cudnnSetFilter4dDescriptor(w_, type, CUDNN_TENSOR_NHWC, n(g.channels), in_channels, n(g.window),
                                   n(g.window_width)),
        name_);
  check(cudnnSetConvolution2dDescriptor(conv_, n(g.padding), n(g.padding_width), n(g.stride), n(g.stride), 1,
                                        1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        name_);
  check(cudnnSetConvolutionMathType(conv_, math_of(device)), name_);
}

// A column of a matrix is a pixel's channels; a row of the filters, a filter.
void Passes::describe_products(const Device& device, const Geometry& g) {
  using Size = Product::Size;
  constexpr auto kTurned = Product::Lies::turned, kPlain = Product::Lies::plain;
  const std::int64_t pixels = device.batch * g.planes.out * g.height * g.width;
  products_.reset(new Products{{device, Size{g.channels, pixels, g.in_channels, kTurned, kPlain}, name_},
                               {device, Size{g.in_channels, g.channels, pixels, kPlain, kTurned}, name_},
                               {device, Size{g.in_channels, pixels, g.channels, kPlain, kPlain}, name_}});
}

void Passes::choose(Device& device, const Arrays& given) {
  Scratch scratch, planes, filters;
  Arrays arrays = given;
  float spreads = 0, gathers = 0;  // milliseconds
  if (depth_.copies()) {
    find_volume_passes(device, given);
    void* const copy = planes.of(depth_.bytes(), "the planes of a volume");
    const auto time = [&](const auto& body) {
      return device.by_shape ? 0.0F : milliseconds_of(device.stream, body);
    };
    if (depth_.pads()) {
      void* const padded = filters.of(depth_.filter_bytes(filter_pixels()), kTiming);
      if (given.w != nullptr) arrays.w = padded;
      if (given.dw != nullptr) arrays.dw = padded;
    }
    if (given.x != nullptr)
      arrays.x = copy, spreads = time([&] { depth_.spread(device.stream, given.x, copy); });
    if (given.dx != nullptr) {
      arrays.dx = copy, arrays.into = Into::fresh;
      gathers = time([&] { depth_.gather(device.stream, copy, given.dx, false); });
    }
  }
  if (arrays.forward()) choose_forward(device, arrays, spreads, scratch);
  if (arrays.weights()) choose_weights(device, arrays, spreads, scratch);
  if (arrays.data()) choose_data(device, arrays, gathers, scratch);
}

void Passes::find_volume_passes(Device& device, const Arrays& arrays) {
  using Pass = VolumePass::Pass;
  const auto find = [&](const Stream& stream, Pass pass, const VolumePass::Arrays& of) -> VolumePassPtr {
    auto made = std::make_shared<VolumePass>(device, geometry_, pass);
    if (!made->choose(device, stream, of, most_workspace())) return nullptr;
    return made;
  };
  check(cudaDeviceSynchronize(), "timing convolutions");
  if (arrays.forward()) by_.forward_volume = find(device.main, Pass::forward, {arrays.x, arrays.w, arrays.y});
  if (arrays.weights() && arrays.weights_into == Into::fresh)
    by_.weights_volume = find(device.side, Pass::filters, {arrays.x, nullptr, arrays.dy, arrays.dw});
  if (arrays.data() && arrays.into == Into::fresh)
    by_.data_volume = find(device.main, Pass::data, {arrays.dx, arrays.w, arrays.dy});
}

// Where nothing is to depend on time, its own is what stays.
bool Passes::stays(VolumePassPtr& own, float milliseconds, float moves, const std::string& what) {
  if (own != nullptr && milliseconds + moves < own->milliseconds()) own = nullptr;
  if (own == nullptr && milliseconds == INFINITY)
    throw Failure("cuDNN has no algorithm that repeats its bits, in " +
                  std::to_string(most_workspace() >> 20) + " MiB of workspace, for " + what +
                  "; a smaller batch may have one");
  return own != nullptr;
}

void Passes::choose_forward(Device& device, const Arrays& arrays, float moves, Scratch& scratch) {
  int found = 0;
  std::vector<cudnnConvolutionFwdAlgoPerf_t> choices(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  check(cudnnGetConvolutionForwardAlgorithm_v7(device.main.dnn, x_, w_, conv_, y_,
                                               static_cast<int>(choices.size()), &found, choices.data()),
        name_);
  const auto best = fastest(device, choices, found, name_, scratch, [&](auto algorithm) {
    return cudnnConvolutionForward(device.main.dnn, &kOne, x_, arrays.x, w_, arrays.w, conv_, algorithm,
                                   scratch.at(), scratch.bytes(), &kZero, y_, arrays.y);
  });
  if (stays(by_.forward_volume, best.milliseconds, moves, name_)) return;
  by_.forward = best.by;
  raise(device.main.workspace_bytes, best.bytes);
  if (products_ != nullptr && !device.by_shape)
    by_.forward_product = faster(device, products_->forward, {arrays.w, arrays.x, arrays.y}, kZero,
                                 best.milliseconds, scratch, device.main.workspace_bytes);
}

void Passes::choose_weights(Device& device, const Arrays& arrays, float moves, Scratch& scratch) {
  int found = 0;
  std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> choices(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
  check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            device.main.dnn, x_, y_, conv_, w_, static_cast<int>(choices.size()), &found, choices.data()),
        name_);
  const std::string of_weights = "the weights of " + name_;
  const auto best = fastest(device, choices, found, of_weights, scratch, [&](auto algorithm) {
    return cudnnConvolutionBackwardFilter(device.main.dnn, &kOne, x_, arrays.x, y_, arrays.dy, conv_,
                                          algorithm, scratch.at(), scratch.bytes(), &kZero, w_, arrays.dw);
  });
  if (stays(by_.weights_volume, best.milliseconds, moves, of_weights)) return;
  by_.weights = best.by;
  raise(device.side.workspace_bytes, best.bytes);
  if (products_ != nullptr)
    by_.weights_product = faster(device, products_->weights, {arrays.x, arrays.dy, arrays.dw}, kZero,
                                 best.milliseconds, scratch, device.side.workspace_bytes);
}

void Passes::choose_data(Device& device, const Arrays& arrays, float moves, Scratch& scratch) {
  int found = 0;
  std::vector<cudnnConvolutionBwdDataAlgoPerf_t> choices(CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
  check(cudnnGetConvolutionBackwardDataAlgorithm_v7(device.main.dnn, w_, y_, conv_, x_,
                                                    static_cast<int>(choices.size()), &found, choices.data()),
        name_);
  const std::string of_data = "the data of " + name_;
  const auto best = fastest(device, choices, found, of_data, scratch, [&](auto algorithm) {
    return cudnnConvolutionBackwardData(device.main.dnn, &kOne, w_, arrays.w, y_, arrays.dy, conv_, algorithm,
                                        scratch.at(), scratch.bytes(), &prior(arrays.into), x_, arrays.dx);
  });
  if (stays(by_.data_volume, best.milliseconds, moves, of_data)) return;
  by_.data = best.by;
  raise(device.main.workspace_bytes, best.bytes);
  if (products_ != nullptr && !device.by_shape)
    by_.data_product = faster(device, products_->data, {arrays.w, arrays.dy, arrays.dx}, prior(arrays.into),
                              best.milliseconds, scratch, device.main.workspace_bytes);
}

// What the streams need for the passes as they were chosen.
void Passes::reserve(Device& device, const Arrays& arrays) const {
  const auto take = [&](Stream& stream, const VolumePassPtr& own) {
    if (own != nullptr) raise(stream.workspace_bytes, own->workspace_bytes());
    raise(stream.plane_bytes,
          own != nullptr ? own->filter_bytes() : depth_.bytes() + depth_.filter_bytes(filter_pixels()));
  };
  if (arrays.forward()) take(device.main, by_.forward_volume);
  if (arrays.weights()) take(device.side, by_.weights_volume);
  if (arrays.data()) take(device.main, by_.data_volume);
}

// x, or a copy with the planes of its windows side by side.
const void* Passes::in_planes(const Stream& stream, const void* x) const {
  if (!depth_.copies()) return x;
  depth_.spread(stream.stream, x, stream.planes);
  return stream.planes;
}

// The planes of a batch are a multiple of 16 bytes where filters have a copy.
void* Passes::padded_filters(const Stream& stream) const {
  return static_cast<char*>(stream.planes) + depth_.bytes();
}

const void* Passes::with_zeros(const Stream& stream, const void* w) const {
  if (!depth_.pads()) return w;
  depth_.pad_filters(stream.stream, w, padded_filters(stream), filter_pixels());
  return padded_filters(stream);
}

void Passes::forward(Device& device, const void* volume, const void* w, void* y, Into into) const {
  if (by_.forward_volume != nullptr) return by_.forward_volume->run(device.main, {volume, w, y});
  const void* const x = in_planes(device.main, volume);
  if (by_.forward_product)
    return check(products_->forward.run(device.main, *by_.forward_product, {w, x, y}, prior(into)), name_);
  check(cudnnConvolutionForward(device.main.dnn, &kOne, x_, x, w_, with_zeros(device.main, w), conv_,
                                by_.forward, device.main.workspace, device.main.workspace_bytes, &prior(into),
                                y_, y),
        name_);
}

void Passes::weights(const Stream& stream, const void* volume, const void* dy, void* dw, Into into) const {
  if (by_.weights_volume != nullptr) return by_.weights_volume->run(stream, {volume, nullptr, dy, dw});
  const void* const x = in_planes(stream, volume);
  if (by_.weights_product)
    return check(products_->weights.run(stream, *by_.weights_product, {x, dy, dw}, prior(into)), name_);
  void* const to = depth_.pads() ? padded_filters(stream) : dw;
  check(cudnnConvolutionBackwardFilter(stream.dnn, &kOne, x_, x, y_, dy, conv_, by_.weights, stream.workspace,
                                       stream.workspace_bytes, &prior(into), w_, to),
        name_);
  if (depth_.pads()) depth_.unpad_filters(stream.stream, to, dw, filter_pixels());
}

void Passes::data(Device& device, const void* w, const void* dy, void* dx, Into into) const {
  if (by_.data_volume != nullptr) return by_.data_volume->run(device.main, {dx, w, dy});
  if (!depth_.copies()) return data_of_images(device, w, dy, dx, into);
  data_of_images(device, w, dy, device.main.planes, Into::fresh);
  depth_.gather(device.stream, device.main.planes, dx, into == Into::sum);
}

void Passes::data_of_images(Device& device, const void* w, const void* dy, void* dx, Into into) const {
  if (by_.data_product)
    return check(products_->data.run(device.main, *by_.data_product, {w, dy, dx}, prior(into)), name_);
  check(cudnnConvolutionBackwardData(device.main.dnn, &kOne, w_, with_zeros(device.main, w), y_, dy, conv_,
                                     by_.data, device.main.workspace, device.main.workspace_bytes,
                                     &prior(into), x_, dx),
        name_);
}

}  // namespace dlrun::cuda
