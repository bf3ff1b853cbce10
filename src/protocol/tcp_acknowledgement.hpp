// Acknowledgement: whether the machine at the other end of a TCP connection is there. Its kernel acknowledges
// what it gets, however busy or stopped the program is that should read it; so a machine without power and a
// cut cable are noticed within seconds, and a starved program is never taken for one. (TCP_USER_TIMEOUT would
// also end a connection whose reader is stopped while its buffer is full.)
#pragma once

#include "src/base/clock.hpp"

namespace dlrun {

// How long a machine may acknowledge nothing, by how long its program may say nothing (launch.lost-after).
Seconds acknowledge_limit(Seconds lost_after);

// How long nothing was acknowledged of what was sent, and sent again; 0 where nothing waits for that, and for
// what is no TCP connection (a pipe, a socket pair).
Seconds unacknowledged_for(int fd);

}  // namespace dlrun
