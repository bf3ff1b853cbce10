// listen_on_any_port(): a TCP socket that listens on all addresses of this machine, on a port that the kernel
// chooses. It takes no connections: see listener.hpp.
#pragma once

#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun {

/// Both families on one socket where there is IPv6, else the old one alone. It does not block.
Result<UniqueFd> listen_on_any_port();

/// The port that a socket is bound to.
Port port_of(const UniqueFd& socket);

}  // namespace dlrun
