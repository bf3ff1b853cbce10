// DnnGraph: operations on tensors that cuDNN is to do as one, over its backend interface: described once,
// then run as often as wanted. Tensors are numbered; those with an address in the call of run() are in
// memory, the others exist inside of the operation only. Engines that do not repeat their bits are left out.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

class DnnGraph {
 public:
  using Id = std::int64_t;
  using Sizes = std::vector<std::int64_t>;
  enum class Kept { inside, in_memory, by_value };
  struct Shape {
    Sizes extents, strides;
  };

  DnnGraph() = default;
  DnnGraph(const DnnGraph&) = delete;
  DnnGraph& operator=(const DnnGraph&) = delete;
  ~DnnGraph();

  Id tensor(const Shape& shape, cudnnDataType_t type, Kept kept);
  // A number of the host, the same in every run.
  Id value(float number);
  void product(Id a, Id b, Id to);
  void map(cudnnPointwiseMode_t mode, Id x, Id to);
  void map(cudnnPointwiseMode_t mode, Id x, Id other, Id to);
  // The places of `like` along an axis, and the choice of x where a comparison holds, else of `other`.
  void places(std::int64_t axis, Id like, Id to);
  void compare(cudnnPointwiseMode_t mode, Id x, Id other, Id to);
  void choose(Id x, Id other, Id holds, Id to);
  void reduce(cudnnReduceTensorOp_t by, Id x, Id to);
  void reshape(Id x, Id to);
  // A pass of a convolution: the forward one, or the gradient of its filters or of its data. Windows are
  // cubes of as many axes as there are behind the channels.
  enum class Pass { forward, filters, data };
  struct Windows {
    std::int64_t axes, stride, padding;
  };
  // x, w and y are what they are forward; the one that the pass gives may be in_memory too.
  void convolution(Pass pass, const Windows& windows, Id x, Id w, Id y);

  // What engines may compute with. Plain: f32 as it is, by no matrix unit.
  enum class Arithmetic { any, plain };
  struct Search {
    Arithmetic arithmetic;
    std::size_t limit;    // of the workspace, in bytes
    std::size_t engines;  // no more than so many
  };
  // Whether cuDNN has an engine for it. The one that it expects to be the fastest is then chosen.
  bool build(cudnnHandle_t handle) { return build(handle, {Arithmetic::any, SIZE_MAX, 1}); }
  bool build(cudnnHandle_t handle, const Search& search);
  // Those that build() found, in cuDNN's order; choose() takes another one.
  std::size_t engines() const { return plans_.size(); }
  void choose(std::size_t engine) { chosen_ = engine; }
  std::size_t workspace_bytes() const { return plans_[chosen_].workspace_bytes; }

  struct Address {
    Id id;
    const void* at;
  };
  void run(const Stream& stream, const std::vector<Address>& addresses, void* workspace) const {
    check(try_run(stream, addresses, workspace), "an operation of cuDNN");
  }
  cudnnStatus_t try_run(const Stream& stream, const std::vector<Address>& addresses, void* workspace) const;

 private:
  using Descriptor = cudnnBackendDescriptor_t;
  Descriptor make(cudnnBackendDescriptorType_t type);
  template <class T>
  static void set(Descriptor descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const T& value) {
    set(descriptor, name, type, 1, &value);
  }
  static void set(Descriptor descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t count, const void* values);
  static void finish(Descriptor descriptor);
  Descriptor pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t computed, std::optional<std::int64_t> axis);
  void add(Descriptor operation);
  Descriptor windows_of(const Windows& windows);
  // Configurations of engines by a rule of cuDNN's, as many as it names.
  std::vector<Descriptor> found_by(cudnnBackendHeurMode_t rule, Descriptor graph);
  bool is_allowed(Descriptor configuration, Arithmetic arithmetic);
  void plan(cudnnHandle_t handle, Descriptor configuration, std::size_t limit);

  std::vector<Descriptor> all_, tensors_, operations_;
  std::vector<std::pair<Id, std::unique_ptr<float>>> values_;
  struct Plan {
    Descriptor of;
    std::size_t workspace_bytes;
  };
  std::vector<Plan> plans_;
  std::size_t chosen_ = 0;
};

}  // namespace dlrun::cuda
