// What elastic ranks say and hear of their worlds on the control channel: messages of the head as JSON lines,
// and a rank's line as a message.
#pragma once

#include "src/base/json_fwd.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::agent {

Json control_line(const protocol::to_agent::Regroup& order);
Json control_line(const protocol::to_agent::NewWorld& world);
/// {"left_world": 1, "done": 17, "port": "...", "at_step": false, "job": "..."}
Result<protocol::from_agent::LeftWorld> read_left_world(Rank rank, const Json& line);

}  // namespace dlrun::agent
