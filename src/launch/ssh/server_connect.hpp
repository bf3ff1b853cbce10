// Connecting to a host's ssh server, up to its banner: names resolved, one address after another tried, each
// with its own limit. Whatever waits here also ends when the alarm rings. It speaks no ssh yet.
#pragma once

#include <string>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::launch {

// Rings for all threads that wait for something.
class Alarm {
 public:
  Alarm();
  explicit Alarm(UniqueFd fd) : fd_(std::move(fd)) {}  // a copy of another's
  void ring() const;
  void silence() const;                 // it may ring again
  int fd() const { return fd_.get(); }  // readable once it rang

 private:
  UniqueFd fd_;
};

enum class Wake { ready, alarm, late };

// Until one of `events` on `fd` (or an end or error of it), the alarm, or the deadline. fd < 0: a pause.
Wake wait_for(int fd, short events, const Alarm& alarm, Ticks deadline);

struct Reached {
  UniqueFd connection;
  bool turned_away = false;  // the server is there but took no more: MaxStartups. Ask again later
};

// A connection on which the server has begun to speak.
Result<Reached> reach_server(const std::string& host, Port port, Seconds limit, const Alarm& alarm,
                             Ticks deadline);

}  // namespace dlrun::launch
