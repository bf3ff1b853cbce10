// What the bits of a training on CPUs rest on beside the job file: the processors, the instructions that
// oneDNN takes on them, the threads of a rank and oneDNN's version. With others a sum may be added in another
// order. The function tells; it compares nothing.
#pragma once

#include <map>
#include <string>

namespace dlrun::runtime {

/// Of this process: "processor" (where the kernel names it), "instructions", "threads", "onednn".
std::map<std::string, std::string> arithmetic_of_cpu();

}  // namespace dlrun::runtime
