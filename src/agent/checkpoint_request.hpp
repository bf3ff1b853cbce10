// CheckpointRequest: the head's wish for a checkpoint, as it comes over the wire: by which ways it shall
// reach the ranks of a node, and whether they shall stop then.
#pragma once

#include "src/base/json_fwd.hpp"
#include "src/process/exit_status.hpp"

namespace dlrun::agent {

struct CheckpointRequest {
  enum class Then { go_on, stop };
  Then then = Then::go_on;
  bool control = false, file = false;
  int signal = 0;  // 0: none
};

// Ways that the message does not name are not gone.
CheckpointRequest read_checkpoint_request(const Json& message);
// What is told on the control channel.
Json control_line(const CheckpointRequest& request);
// What the request's file says.
std::string_view file_content(const CheckpointRequest& request);
// A rank that knows nothing of checkpoints dies of the signal that asks for one: no failure of its own.
bool died_of_request(const ExitStatus& status, int signal);

}  // namespace dlrun::agent
