// An allocation that somebody has written into a file, for --allocation.
#pragma once

#include <filesystem>

#include "schedulers/allocation.hpp"

namespace dlrun {

/// What cannot be read is an Error of the allocation, whatever is wrong with it.
Result<Allocation> allocation_from_file(const std::filesystem::path& file);

}  // namespace dlrun
