// A rank finalizes with a PMI-1 launcher on its own.
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "runtime/comm/pmi/client.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

namespace {

struct Launcher {
  UniqueFd rank_side;
  UniqueFd launcher_side;

  Launcher() {
    int ends[2] = {-1, -1};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    rank_side.reset(ends[0]);
    launcher_side.reset(ends[1]);
  }
  void answer(const std::string& text) const {
    CHECK(write(launcher_side.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string heard() const {
    char text[256] = {};
    const ssize_t got = recv(launcher_side.get(), text, sizeof text, MSG_DONTWAIT);
    return {text, got > 0 ? static_cast<std::size_t>(got) : 0};
  }
  Result<void> finalize() const { return pmi_finalize(std::to_string(rank_side.get())); }
};

}  // namespace

TEST_CASE("it waits for all ranks, says finalize and waits for the answer") {
  const Launcher launcher;
  launcher.answer("cmd=barrier_out rc=0\ncmd=finalize_ack rc=0\n");
  CHECK(launcher.finalize());
  CHECK(launcher.heard() == "cmd=barrier_in\ncmd=finalize\n");
}

TEST_CASE("a launcher that closes instead of answering lets the rank go") {
  Launcher launcher;
  shutdown(launcher.launcher_side.get(), SHUT_WR);
  CHECK(launcher.finalize());
}

TEST_CASE("another answer is an error that shows it") {
  const Launcher launcher;
  launcher.answer("cmd=what\n");
  const auto result = launcher.finalize();
  REQUIRE(!result);
  CHECK(result.error().what == "the launcher answered 'cmd=what' to the PMI request 'cmd=barrier_in'");
}

TEST_CASE("PMI_FD that is no number is an error") {
  CHECK(!pmi_finalize(""));
  CHECK(!pmi_finalize("5x"));
  CHECK(!pmi_finalize("-1"));
}

}  // namespace dlrun::runtime
