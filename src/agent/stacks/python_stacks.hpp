// Where a Python program is, in Python: asked of py-spy where it is on the program's PATH, else of the
// program's own faulthandler where it uses dlrun_client, which leaves a file python-PID-SIGNAL beside the
// control socket: the signal makes Python write its stacks there.
#pragma once

#include <string>
#include <string_view>

#include "src/process/stacks.hpp"

namespace dlrun::agent {

bool is_python_program(pid_t pid);
/// Sets `python` of its first thread, or adds why it is not known to `problems`. `folder`: of the sockets.
void read_python_stack(RankStack& stack, const std::string& folder);

/// The first thread's frames in the output of `py-spy dump --json`. Pure.
Result<StackFrames> frames_of_py_spy(std::string_view text, pid_t pid);
/// The current thread's frames in the text of faulthandler; empty where it is not in there. Pure.
StackFrames frames_of_faulthandler(std::string_view text);

}  // namespace dlrun::agent
