// What the kernel says about a process and those below it: running, stopped, or stuck in the kernel. Reads
// /proc once; decides nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dlrun {

struct ProcessState {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';        // R, S, D, T, t, Z, ... as in proc(5)
  std::string name = {};   // of the program, as ps shows it
  std::string waits = {};  // the kernel's function that it waits in, where the kernel tells
};

// One process; unset where it is gone.
std::optional<ProcessState> process_state(pid_t pid);

// The process and all below it, itself first; empty where it is gone.
std::vector<ProcessState> states_of_tree(pid_t root);

}  // namespace dlrun
