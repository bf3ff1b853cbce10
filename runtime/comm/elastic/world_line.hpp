// WorldLine: an elastic rank's line to its agent, on which it hears of worlds (JSON lines over the Unix
// socket that DLRUN_CONTROL names), whatever its other threads do. What the lines mean is said in
// src/agent/world_words.hpp. It decides nothing.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

struct NewWorld {
  int generation = -1;
  std::vector<int> ranks;          // as the launcher numbers them
  std::vector<std::string> ports;  // of each
  int source = 0;
  bool behind = false;
};

class WorldLine {
 public:
  static Result<std::unique_ptr<WorldLine>> open(const std::string& socket_name, int rank);
  ~WorldLine();
  WorldLine(const WorldLine&) = delete;
  WorldLine& operator=(const WorldLine&) = delete;

  /// This rank is in no world and waits for that one. No port: it leaves the run.
  struct Leave {
    int generation = 0;
    std::uint64_t done = 0;
    std::string port = {};
    bool at_step = false;  // as it was asked to
    std::string job = {};  // what it trains, as a checksum
  };
  Result<void> leave(const Leave& how);
  /// The world of this generation, or a later one to which the ranks are called; an Error where the agent is
  /// gone.
  struct News {
    std::optional<NewWorld> world;
    int called_to = 0;
    bool member = true;  // of the world that it is called to
  };
  Result<News> await(int generation);
  /// Until the ranks are called to a world behind this generation, or the time is over.
  Result<std::optional<int>> await_call(int generation, Seconds limit);
  /// The world that the ranks were last asked to begin behind a step.
  int asked_to() const;
  /// On the line's own thread, each time that the ranks are called to a later world.
  void when_called(std::function<void(int generation)> act);

 private:
  WorldLine(UniqueFd fd, UniqueFd end, int rank);
  void listen();
  void take(std::string_view line);
  void take_call(const Json& line);
  bool leaves(int generation) const { return !member_ && listed_ >= generation; }
  void lose();

  UniqueFd fd_, end_;
  int rank_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::function<void(int)> when_called_;
  NewWorld world_;
  int called_to_ = 0, asked_to_ = 0;
  int listed_ = 0;      // the last world whose ranks were told
  bool member_ = true;  // of that world
  bool lost_ = false;   // the agent is gone
  std::thread thread_;
};

}  // namespace dlrun::runtime
