// Which ranks of a job are parameter servers by their role: the launcher numbers workers first (adapter
// builtin), and tells how many servers there are (DLRUN_SERVERS) and what a rank is (DLRUN_ROLE).
#pragma once

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

struct ServerRoles {
  int servers = 0;  // processes of their own; 0: there are none
  enum class Own { worker, server } own = Own::worker;
};

/// An Error where the variables contradict each other.
Result<ServerRoles> server_roles_of(const Environment& environment);

}  // namespace dlrun::runtime
