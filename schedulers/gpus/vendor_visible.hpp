// What the variables of AMD's and Intel's libraries leave visible of a machine's GPUs. ROCm's two lists count
// one after the other: HIP_VISIBLE_DEVICES (else CUDA_VISIBLE_DEVICES, which HIP takes for it) has positions
// in what ROCR_VISIBLE_DEVICES leaves. A mask of Level Zero names devices or, as "0.1", tiles; an empty one
// hides nothing.
#pragma once

#include <filesystem>

#include "schedulers/gpus/gpus.hpp"

namespace dlrun {

/// The GPUs of AMD, else of Intel, as the kernel shows them; no names where there are none. `root` is "/",
/// but for tests.
FoundGpus gpus_of_sysfs(const std::filesystem::path& root, const Environment& environment);

FoundGpus visible_to_rocm(const FoundGpus& driver, const Environment& environment);
FoundGpus visible_to_level_zero(const FoundGpus& driver, const Environment& environment);

/// The vendor whose variable is set, where those of one vendor are alone: Slurm sets all of them unless its
/// configuration names the vendor.
std::optional<GpuVendor> vendor_of_variables(const Environment& environment);

}  // namespace dlrun
