// The few calls on TCP sockets that the links between ranks need, over IPv4 and IPv6. It decides nothing
// about who may connect (rank_port.hpp does). A peer's machine that dies is noticed by the kernel's own
// probes.
#pragma once

#include <cstddef>
#include <optional>
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
/// On every address of both protocols; on IPv4 alone where the kernel has no IPv6.
Result<Listener> listen_anywhere();

/// Both give sockets that do not block. accept_one: unset where nobody waits any more; an Error (with errno's
/// reason) where this process or machine has no room for another connection.
Result<std::optional<UniqueFd>> accept_one(int listener);
/// Starts only: writable means that outcome_of() is known.
Result<UniqueFd> start_connect(const std::string& address, int port);
Result<void> outcome_of(int connecting);

void set_blocking(int socket);

/// Addresses of this host that others may reach, none of them of a single link only.
std::vector<std::string> own_addresses();
std::string own_host();

/// All of it; false where the peer is gone. For sockets that block.
bool write_all(int socket, std::span<const std::byte> bytes);
bool read_all(int socket, std::span<std::byte> bytes);

}  // namespace dlrun::runtime::tcp
