// call_agent_port(): an agent's way over TCP to its head, or to the agent above it: tries the addresses in
// turn until one answers with a proof, or the time is up. It blocks.
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

/// An Error names `whom`, every address that was tried and what came of it.
Result<UniqueFd> call_agent_port(std::string_view whom, const std::vector<std::string>& addresses, Port port,
                                 const Token& token, const AgentIdentity& identity, Seconds timeout);

}  // namespace dlrun
