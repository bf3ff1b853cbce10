// Who holds a TCP port of this machine, as far as the kernel tells us: other users' processes cannot be
// named.
#pragma once

#include <string>

namespace dlrun {

// "process 4711 (python3 -m http.server)", "a process of user 1000", or "another program".
std::string port_holder(int port);

}  // namespace dlrun
