// CudaEngine: an Engine on one GPU, through the plug-in libdlrun-cuda.so. Takes the same Graph as the CPU's
// and has the same tensors in the same order, so that checkpoints go from one to the other. It includes no
// CUDA.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/cuda/table.h"
#include "runtime/engine/device_allreduce.hpp"
#include "runtime/engine/device_group.hpp"
#include "runtime/engine/device_pipeline.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/operator_time.hpp"
#include "runtime/graph/graph.hpp"
#include "src/base/shared_library.hpp"

namespace dlrun::runtime {

// The plug-in, loaded, with the GPUs that this process sees.
class CudaLibrary {
 public:
  // An Error where the plug-in is not there, is of another build, or finds no driver or no GPU.
  static Result<CudaLibrary> open();
  int devices() const { return devices_; }
  const DlrunCudaTable& table() const { return *table_; }
  // Of another table of the plug-in.
  template <class T>
  Result<T*> symbol(const char* name) const {
    return library_.symbol<T>(name);
  }
  std::string device_name(int device) const;
  // What the last bits of a computation depend on: the device and the libraries.
  std::map<std::string, std::string> arithmetic(int device) const;
  Error error(std::string what) const;  // with the plug-in's own text

 private:
  CudaLibrary(SharedLibrary library, const DlrunCudaTable* table)
      : library_(std::move(library)), table_(table) {}
  SharedLibrary library_;
  const DlrunCudaTable* table_;
  int devices_ = 0;
};

class CudaEngine : public Engine {
 public:
  // From the next step on train_batch sums the gradients over the ranks by `sum`, beside backward.
  virtual Result<void> connect(std::unique_ptr<DeviceAllreduce> sum) = 0;
  // The same where EngineOptions::state_part is set: each rank sums its part of the gradients, updates these
  // weights and sends them to the others of the group.
  virtual Result<void> divide_state(std::unique_ptr<DeviceGroup> data) = 0;
  // Operators of a divided model ask this group; no step is taken before it is there.
  virtual Result<void> join(std::unique_ptr<DeviceGroup> tensor) = 0;
  // A stage exchanges values and gradients with those beside it by this; no step is taken before it is there.
  // All stages call it.
  virtual Result<void> join(std::unique_ptr<DevicePipeline> pipeline) = 0;
  // What summed is gone, and that a peer was lost is forgotten: connect() is next.
  virtual Result<void> disconnect() = 0;
  // Seconds of one sum of `count` floats by it, all ranks at once.
  struct SumTime {
    double issued, captured;  // as the host issues it; within a graph
  };
  virtual Result<SumTime> time_sum(std::size_t count) = 0;
  // Each operator of a training step timed alone, then "copy" (of the batch to the GPU), "update", and
  // "step": the whole of it on a batch that is there already, without the update. State and results mean
  // nothing afterwards.
  virtual Result<std::vector<OperatorTime>> profile() = 0;
};

Result<std::unique_ptr<CudaEngine>> compile_cuda(const CudaLibrary& library, Graph graph,
                                                 const EngineOptions& options, int device);

}  // namespace dlrun::runtime
