// The links between ranks: who is gone is known by name, who left in order is not missed.
#include "runtime/comm/transport/peer_links.hpp"

#include <array>
#include <functional>
#include <memory>
#include <thread>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dlrun::runtime {

namespace {

std::string read_text(int pipe) {
  std::string text;
  for (char c = 0; ::read(pipe, &c, 1) == 1 && c != '\n';) text.push_back(c);
  return text;
}

// Ranks as processes, so that one can die as ranks do. Rank 0 is this one; what it announces goes to the
// others through a pipe each.
class Ranks {
 public:
  explicit Ranks(int others, const std::function<int(PeerLinks&, int rank)>& body) {
    for (int rank = 1; rank <= others; ++rank) {
      std::array<int, 2> pipe{};
      REQUIRE(::pipe(pipe.data()) == 0);
      const pid_t pid = ::fork();
      REQUIRE(pid >= 0);
      if (pid == 0) ::_exit(child(rank, others + 1, pipe[0], body));
      ::close(pipe[0]);
      pipes_.push_back(pipe[1]);
      pids_.push_back(pid);
    }
    auto made = PeerLinks::connect(0, others + 1, [&](std::string text) -> Result<std::string> {
      text += '\n';
      for (const int pipe : pipes_)
        if (::write(pipe, text.data(), text.size()) < 0) return fail(ErrorKind::internal, "pipe");
      return text;
    });
    REQUIRE(made);
    links = std::make_unique<PeerLinks>(std::move(*made));
  }
  ~Ranks() {
    for (const int pipe : pipes_) ::close(pipe);
  }
  int code_of(int rank) const {
    int status = 0;
    REQUIRE(::waitpid(pids_[static_cast<std::size_t>(rank - 1)], &status, 0) > 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::unique_ptr<PeerLinks> links;

 private:
  static int child(int rank, int ranks, int pipe, const std::function<int(PeerLinks&, int)>& body) {
    auto made = PeerLinks::connect(
        rank, ranks, [&](const std::string&) -> Result<std::string> { return read_text(pipe); });
    if (!made) return 99;
    auto held = std::make_unique<PeerLinks>(std::move(*made));
    const int code = body(*held, rank);
    if (code == 7) ::_exit(7);  // dies without disconnecting
    return code;
  }

  std::vector<int> pipes_;
  std::vector<pid_t> pids_;
};

std::string await_gone(PeerLinks& links) {
  for (;;)
    if (const auto name = links.gone()) return *name;
}

std::string own_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

TEST_CASE("a rank that dies is named to all the others") {
  Ranks ranks(2, [](PeerLinks& links, int rank) {
    if (rank == 2) return 7;
    return await_gone(links).starts_with("rank 2 on ") ? 0 : 1;
  });
  CHECK(await_gone(*ranks.links) == "rank 2 on " + own_host());
  CHECK(ranks.code_of(1) == 0);
  CHECK(ranks.code_of(2) == 7);
}

TEST_CASE("the death of rank 0 is seen by the others") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {  // rank 0, which dies once all are there
    const auto made = PeerLinks::connect(0, 2, [&](std::string text) -> Result<std::string> {
      text += '\n';
      return ::write(pipe[1], text.data(), text.size()) > 0 ? text : std::string();
    });
    ::_exit(made ? 7 : 99);  // without disconnecting
  }
  auto made =
      PeerLinks::connect(1, 2, [&](const std::string&) -> Result<std::string> { return read_text(pipe[0]); });
  REQUIRE(made);
  CHECK(await_gone(*made) == "rank 0 on " + own_host());
  ::waitpid(pid, nullptr, 0);
  ::close(pipe[0]), ::close(pipe[1]);
}

TEST_CASE("a rank that leaves in order is not gone") {
  Ranks ranks(1, [](PeerLinks&, int) { return 0; });
  CHECK(ranks.code_of(1) == 0);
  for (int probe = 0; probe < 3; ++probe) CHECK(!ranks.links->gone());
}

}  // namespace dlrun::runtime
