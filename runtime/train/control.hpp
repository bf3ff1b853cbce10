// ControlChannel: the rank's line to its agent (JSON lines over the Unix socket that DLRUN_CONTROL names). It
// never makes training wait: what cannot be sent now is kept for later, progress that piles up is dropped,
// and an agent that is gone is no Error.
#pragma once

#include <string>

#include "src/base/clock.hpp"
#include "src/base/environment.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

// What was asked for since the last look.
struct Requests {
  bool save = false;     // write a checkpoint and go on
  bool stop = false;     // write a checkpoint and end
  bool regroup = false;  // leave the elastic world behind this step, for another one
};

class ControlChannel {
 public:
  /// Without a name there is no channel, and all calls below have no effect.
  static ControlChannel open(const std::string& socket_name, int rank);

  bool connected() const { return static_cast<bool>(fd_); }
  enum class Importance { progress, kept };  // progress is dropped while earlier lines wait
  void send(const Json& message, Importance importance);
  Requests poll();
  /// Gives waiting lines a last chance.
  void flush(Seconds timeout);

 private:
  void push();
  void receive();
  UniqueFd fd_;
  std::string out_, in_;
};

/// The requests that a text of JSON lines holds; lines that are none are passed over.
Requests read_requests(std::string_view lines);

}  // namespace dlrun::runtime
