// agent_program(): the dlrun-agent that launchers start on nodes. It belongs beside dlrun: a dlrun that was
// copied alone says so here, before anybody looks for the reason on the nodes.
#pragma once

#include <string>

#include "src/base/install.hpp"
#include "src/base/result.hpp"

namespace dlrun::launch {

// Its path; an Error (unavailable) where there is none that can be run.
Result<std::string> agent_program(const Installation& own);
Result<std::string> agent_program();  // of this installation

}  // namespace dlrun::launch
