// start_child(): a child process with everything that must be right between fork and exec: its own session,
// the signal mask and dispositions of a fresh process, death with its parent, processors, descriptors. It
// does not wait, kill or read: callers reap by pid (never -1) and signal the group, whose number is the pid.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/process/exit_status.hpp"

namespace dlrun {

enum class ParentDeath {
  outlive,
  kill_child
};  // kill_child: SIGKILL once the starting thread's process dies

// SIGUSR1 and SIGUSR2 end a program that does not ask for them. Some schedulers warn with them (of a pause,
// of the job's end), and send them to every process of the job.
enum class UserSignals { end_it, ignored };

// On which NUMA nodes the child's memory lies; its own children inherit it.
struct MemoryBinding {
  enum class Policy { bind, interleave } policy = Policy::bind;
  std::vector<int> nodes;
};

// What becomes of descriptors that a child was not given: each as it is marked, or all close.
enum class OtherDescriptors { as_marked, closed };

struct ChildSpec {
  Argv argv;                 // argv[0] is looked up in the PATH of `environment`, as a shell would ...
  std::string program = {};  // ... unless the program is named apart from it
  Environment environment;
  std::string working_directory;  // empty: the caller's
  int stdin_fd = -1;              // -1: /dev/null
  int stdout_fd = -1;
  int stderr_fd = -1;
  std::vector<int> inherited_fds;            // kept open under the same number
  std::vector<int> processors = {};          // bound to these; empty: as the caller
  std::optional<MemoryBinding> memory = {};  // empty: as the caller
  ParentDeath parent_death = ParentDeath::kill_child;
  UserSignals user_signals = UserSignals::end_it;
  std::optional<rlimit> open_files = {};  // its limits; empty: the caller's
  OtherDescriptors other_descriptors = OtherDescriptors::as_marked;
};

// The pid of the child, which runs its program: an exec that fails is an Error here, with the program's name.
Result<pid_t> start_child(const ChildSpec& spec);

// The file that a shell would run for `name`, or an Error that says where it was looked for.
Result<std::string> find_program(const std::string& name, const Environment& environment,
                                 const std::string& working_directory);

// The end of a child, if it has ended; never blocks.
std::optional<ExitStatus> reap(pid_t pid);

}  // namespace dlrun
