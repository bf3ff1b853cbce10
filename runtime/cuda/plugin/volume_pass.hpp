// VolumePass: one pass of a convolution over volumes by cuDNN's engines for five axes, NDHWC, where those
// have it. Filters lie on the device with the planes of a window innermost but for the channels
// (depth_windows.hpp); the engines want planes outermost, so they are turned on the way, in the stream's room
// for planes. It adds to nothing that is there, and owns no tensor.
#pragma once

#include "runtime/cuda/plugin/convolution_passes.hpp"
#include "runtime/cuda/plugin/dnn_graph.hpp"

namespace dlrun::cuda {

class VolumePass {
 public:
  using Pass = DnnGraph::Pass;
  // As they are forward; the one that the pass gives is overwritten. `dw`: in the place of w for
  // Pass::filters.
  struct Arrays {
    const void *x, *w, *y;
    void* dw = nullptr;
  };

  VolumePass(const Device& device, const Geometry& geometry, Pass pass);

  // Whether cuDNN has an engine that repeats its bits in `limit` bytes of workspace. The fastest is chosen by
  // timing on `stream`; where nothing is to depend on time, the one that cuDNN expects to be it.
  bool choose(const Device& device, const Stream& stream, const Arrays& arrays, std::size_t limit);
  float milliseconds() const { return milliseconds_; }  // of the chosen one; 0 where none was timed
  std::size_t workspace_bytes() const { return graph_.workspace_bytes(); }
  std::size_t filter_bytes() const;

  void run(const Stream& stream, const Arrays& arrays) const;

 private:
  // The same filters in the other order of planes and pixels.
  void turn(cudaStream_t stream, const void* from, void* to, std::int64_t outer, std::int64_t inner) const;
  cudnnStatus_t try_run(const Stream& stream, const Arrays& arrays) const;

  bool half_;
  Geometry geometry_;
  Pass pass_;
  std::string name_;
  DnnGraph graph_;
  DnnGraph::Id x_, w_, y_;
  float milliseconds_ = 0;
};

}  // namespace dlrun::cuda
