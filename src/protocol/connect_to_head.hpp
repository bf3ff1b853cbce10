// connect_to_head(): an agent's way to its head over TCP: tries the head's addresses in turn until one
// answers with a proof, or the time is up. It blocks: the agent has nothing else to do yet.
#pragma once

#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/types.hpp"
#include "src/base/unique_fd.hpp"
#include "src/protocol/handshake.hpp"

namespace dlrun {

// Where an agent finds its token, unless it is told of a file.
constexpr const char* kTokenVariable = "DLRUN_AGENT_TOKEN";

// An Error names every address that was tried and what came of it.
Result<UniqueFd> connect_to_head(const std::vector<std::string>& addresses, Port port, const Token& token,
                                 const AgentIdentity& identity, Seconds timeout);

}  // namespace dlrun
