// is_inside_function(): whether a process of ours has entered a function of one of its libraries and not left
// it, told from the return addresses on its main thread's stack. Nothing is stopped and nothing is written:
// it only reads the process's memory. It is meant for functions that a program calls once, such as
// MPI_Finalize: an address of an earlier call could lie on the stack for long.
#pragma once

#include <string_view>

#include <sys/types.h>

namespace dlrun {

// Looks into mapped files whose name begins with `library`, and into the program itself. False also where the
// kernel does not let us look.
bool is_inside_function(pid_t pid, std::string_view library, std::string_view function);

}  // namespace dlrun
