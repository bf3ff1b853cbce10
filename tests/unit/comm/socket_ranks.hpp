// Ranks that are threads of the test with the real links between them: a SocketTransport and a JobThread
// each.
#pragma once

#include <functional>
#include <map>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "runtime/comm/transport/socket_transport.hpp"

namespace dlrun::test {

using Links = std::vector<runtime::ConnectedRank>;

// Connections between each two of these ranks, with small buffers, so that long messages move in many pieces.
inline std::vector<Links> connect_ranks(int ranks) {
  std::map<std::pair<int, int>, UniqueFd> ends;
  for (int low = 0; low < ranks; ++low)
    for (int high = low + 1; high < ranks; ++high) {
      int pair[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
      ends[{low, high}].reset(pair[0]);
      ends[{high, low}].reset(pair[1]);
    }
  std::vector<Links> out(static_cast<std::size_t>(ranks));
  for (auto& [from_to, socket] : ends)
    out[static_cast<std::size_t>(from_to.first)].push_back({std::move(socket), from_to.second, "here"});
  return out;
}

inline void on_socket_ranks(int ranks,
                            const std::function<void(runtime::SocketTransport&, runtime::JobThread&)>& body) {
  std::vector<Links> links = connect_ranks(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      runtime::JobThread jobs;
      runtime::SocketTransport link(rank, std::move(links[static_cast<std::size_t>(rank)]), jobs);
      body(link, jobs);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace dlrun::test
