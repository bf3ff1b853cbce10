#include "src/agent/end_helper.hpp"

#include <csignal>
#include <thread>

#include "src/base/units.hpp"
#include "src/process/child.hpp"

namespace dlrun::agent {

void end_helper(pid_t leader) {
  ::kill(-leader, SIGKILL);
  constexpr int kMaxLooks = 200;
  for (int i = 0; i < kMaxLooks && !reap(leader); ++i) std::this_thread::sleep_for(Milliseconds(1));
}

}  // namespace dlrun::agent
