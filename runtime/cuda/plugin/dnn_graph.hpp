// DnnGraph: operations on tensors that cuDNN is to do as one, over its backend interface: described once,
// then run as often as wanted. Tensors are numbered; those with an address in the call of run() are in
// memory, the others exist inside of the operation only. Engines that do not repeat their bits are left out.
#pragma once

#include <array>

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

class DnnGraph {
 public:
  using Id = std::int64_t;
  using Four = std::array<std::int64_t, 4>;
  enum class Kept { inside, in_memory, by_value };
  struct Shape {
    Four extents, strides;
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

  // Whether cuDNN has an engine for it; its workspace is then known.
  bool build(cudnnHandle_t handle);
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  struct Address {
    Id id;
    const void* at;
  };
  void run(const Stream& stream, const std::vector<Address>& addresses, void* workspace);

 private:
  using Descriptor = cudnnBackendDescriptor_t;
  Descriptor make(cudnnBackendDescriptorType_t type);
  template <class T>
  void set(Descriptor descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           const T& value) {
    set(descriptor, name, type, 1, &value);
  }
  void set(Descriptor descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           std::int64_t count, const void* values);
  void finish(Descriptor descriptor);
  Descriptor pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t computed, std::optional<std::int64_t> axis);
  void add(Descriptor operation);
  bool repeats_its_bits(Descriptor configuration);
  bool plan(cudnnHandle_t handle, Descriptor configuration);

  std::vector<Descriptor> all_, tensors_, operations_;
  std::vector<std::pair<Id, std::unique_ptr<float>>> values_;
  Descriptor plan_ = nullptr;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace dlrun::cuda
