// The head's request for a checkpoint on its last steps to the ranks of a node: what each way says.
#pragma once

#include "src/base/json_fwd.hpp"
#include "src/process/exit_status.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::agent {

/// What is told on the control channel.
Json control_line(const protocol::to_agent::RequestCheckpoint& request);
/// What the request's file says.
std::string_view file_content(const protocol::to_agent::RequestCheckpoint& request);
/// A rank that knows nothing of checkpoints dies of the signal that asks for one: no failure of its own.
bool died_of_request(const ExitStatus& status, int signal);

}  // namespace dlrun::agent
