// DeviceCalls through the plug-in of the GPUs, on the calling thread's current device. It includes no CUDA.
#pragma once

#include "runtime/cuda/cuda_engine.hpp"
#include "runtime/engine/device_calls.hpp"

namespace dlrun::runtime {

std::shared_ptr<DeviceCalls> make_cuda_device_calls(const CudaLibrary& library);

}  // namespace dlrun::runtime
