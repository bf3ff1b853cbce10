// The three passes of one convolution over cuDNN, NHWC, or over cuBLASLt where it is a product of matrices.
// Over a volume it is cuDNN's own (volume_pass.hpp) or, where that has none or is slower, one over images,
// whose channels are those of all planes of a window. Each is timed, inside a graph as a step runs it, in
// every algorithm that repeats its bits, and the fastest is kept; layers of one shape share what was found.
// With shards nothing is timed: every rank of every start is to have the same bits. It owns no tensor.
#pragma once

#include "runtime/cuda/plugin/depth_windows.hpp"
#include "runtime/cuda/plugin/product.hpp"
#include "runtime/cuda/plugin/scratch.hpp"

namespace dlrun::cuda {

struct Geometry {
  std::int64_t in_channels, in_height, in_width;
  std::int64_t channels, height, width;  // of the output
  std::int64_t window, window_width, stride, padding, padding_width;
  Planes planes;  // its heights are those of a plane
  std::int64_t weights() const { return channels * in_channels * planes.window * window * window_width; }
  static Geometry of(const DlrunCudaNode& node);
  static Geometry turned(const DlrunCudaNode& node);  // from the node's output to its input
  std::string text() const;
};

class Passes {
 public:
  enum class Into { fresh, sum };  // sum: added to what is there
  // Arrays as they will lie; what is in them is overwritten. A pass is prepared where there is all that it
  // reads and writes. `w` and `dw` are filters of the plan's type.
  struct Arrays {
    const void *x, *w;
    void* y;
    const void* dy;
    void *dw, *dx;
    Into into = Into::fresh;          // what data() will mostly be asked for; where it is fresh, nothing else
    Into weights_into = Into::fresh;  // and weights()
    bool forward() const { return x != nullptr && y != nullptr; }
    bool weights() const { return x != nullptr && dy != nullptr && dw != nullptr; }
    bool data() const { return dy != nullptr && dx != nullptr; }
  };

  Passes(Device& device, const Geometry& geometry, const Arrays& arrays);
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;
  ~Passes();

  void forward(Device& device, const void* x, const void* w, void* y, Into into = Into::fresh) const;
  // On the side stream or on main.
  void weights(const Stream& stream, const void* x, const void* dy, void* dw, Into into) const;
  void data(Device& device, const void* w, const void* dy, void* dx, Into into) const;

 private:
  struct Products {  // the same passes as products
    Product forward, weights, data;
  };

  using VolumePassPtr = std::shared_ptr<const VolumePass>;

  const void* in_planes(const Stream& stream, const void* x) const;
  // Behind the planes, where filters need a copy.
  void* padded_filters(const Stream& stream) const;
  const void* with_zeros(const Stream& stream, const void* w) const;
  std::int64_t filter_pixels() const {
    return geometry_.channels * geometry_.window * geometry_.window_width;
  }
  void data_of_images(Device& device, const void* w, const void* dy, void* dx, Into into) const;
  void describe(Device& device, const Geometry& geometry);
  void describe_products(const Device& device, const Geometry& geometry);
  void choose(Device& device, const Arrays& arrays);
  // cuDNN's own passes over the volume, of those that are prepared.
  void find_volume_passes(Device& device, const Arrays& arrays);
  // `moves`: milliseconds of the copies that a pass over images needs beside it.
  void choose_forward(Device& device, const Arrays& arrays, float moves, Scratch& scratch);
  void choose_weights(Device& device, const Arrays& arrays, float moves, Scratch& scratch);
  void choose_data(Device& device, const Arrays& arrays, float moves, Scratch& scratch);
  // Whether a pass over images in that time leaves the pass to `own`; else there is no `own` any more. Throws
  // where neither has a form.
  static bool stays(VolumePassPtr& own, float milliseconds, float moves, const std::string& what);
  void reserve(Device& device, const Arrays& arrays) const;

  Geometry geometry_;
  std::string name_;
  DepthWindows depth_;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t conv_ = nullptr;
  std::unique_ptr<Products> products_;  // where they are
  Algorithms by_;
};

}  // namespace dlrun::cuda
