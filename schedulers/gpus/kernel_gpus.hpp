// NVIDIA's GPUs as the kernel shows them, for machines whose NVML is missing or does not answer: device
// files, else the driver's folder. It opens no device.
#pragma once

#include <filesystem>

#include "schedulers/gpus/gpus.hpp"

namespace dlrun {

// `root` is "/", but for tests. No names where there is no trace of the driver.
FoundGpus gpus_of_kernel(const std::filesystem::path& root);

}  // namespace dlrun
