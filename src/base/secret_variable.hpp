// take_secret(): a secret that the caller left in the environment. Gone then for our children, and for
// whoever reads /proc/PID/environ.
#pragma once

#include <string>

namespace dlrun {

// Its value; empty where there is none. Before Environment::of_this_process(), which is not to have it.
std::string take_secret(const char* variable);

}  // namespace dlrun
