// The few calls on TCP sockets that the links between ranks need. IPv4, blocking, with a time limit only
// where a connection comes up; a peer's machine that dies is noticed by the kernel's own probes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime::tcp {

struct Listener {
  UniqueFd socket;
  int port = 0;
};
Result<Listener> listen_anywhere();
Result<UniqueFd> accept_within(int listener, int milliseconds);
Result<UniqueFd> connect_within(const std::string& address, int port, int milliseconds);

bool ready_within(int socket, int milliseconds);  // there is something to read

// IPv4 addresses of this host that others may reach.
std::vector<std::string> own_addresses();
std::string own_host();

// All of it; false where the peer is gone.
bool write_all(int socket, std::span<const std::byte> bytes);
bool read_all(int socket, std::span<std::byte> bytes);

}  // namespace dlrun::runtime::tcp
