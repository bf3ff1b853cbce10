// The most memory that this process ever held, as the system counts it. It tells nothing about a device.
#pragma once

#include <cstddef>

#include "src/base/result.hpp"

namespace dlrun::runtime {

Result<std::size_t> peak_memory_bytes();

}  // namespace dlrun::runtime
