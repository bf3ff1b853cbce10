// The agent's end of a rank's control channel, for tests of what ranks tell.
#pragma once

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "src/base/unique_fd.hpp"
#include "tests/unit/data/support.hpp"

namespace dlrun::test {

// An agent's end of the control socket.
struct FakeAgent : Folder {
  std::string name = (path / "control").string();
  UniqueFd listener{::socket(AF_UNIX, SOCK_STREAM, 0)};
  UniqueFd rank;

  FakeAgent() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener.get(), 8) == 0);
  }
  void accept() { rank.reset(::accept(listener.get(), nullptr, nullptr)); }
  std::string hear() const {
    std::string out(1 << 20, '\0');
    const ssize_t got = ::recv(rank.get(), out.data(), out.size(), 0);
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
  }
  void say(std::string_view text) const {
    REQUIRE(::send(rank.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
};

}  // namespace dlrun::test
