#pragma once
#include "src/plan/plan.hpp"
namespace dlrun::render {
inline Result<std::string> render_node_script(const plan::Plan&, NodeIndex) { return std::string("#!/bin/bash\n"); }
}
