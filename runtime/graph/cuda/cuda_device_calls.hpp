// DeviceCalls through the plug-in of the GPUs, on the calling thread's current device. It includes no CUDA.
#pragma once

#include "runtime/comm/device_calls.hpp"
#include "runtime/graph/cuda/cuda_engine.hpp"

namespace dlrun::runtime {

std::shared_ptr<DeviceCalls> make_cuda_device_calls(const CudaLibrary& library);

}  // namespace dlrun::runtime
