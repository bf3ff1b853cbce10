// Who made a GPU: it decides by which variables a program is told what it sees. Unset where nothing tells: a
// scheduler gives indices, and says no more of them.
#pragma once

#include "src/base/enum_names.hpp"

namespace dlrun {

enum class GpuVendor { nvidia, amd, intel };
inline constexpr auto kGpuVendors = enum_names<GpuVendor>(
    {{GpuVendor::nvidia, "nvidia"}, {GpuVendor::amd, "amd"}, {GpuVendor::intel, "intel"}});

}  // namespace dlrun
