// The name of this machine as the kernel has it, short or fully qualified as its administrator set it.
#pragma once

#include <string>

namespace dlrun {

/// This machine's host name; empty where the kernel tells none.
std::string host_name();

}  // namespace dlrun
