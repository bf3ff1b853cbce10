// What this node has for the ranks, where no scheduler tells: the processors in our affinity mask and their
// model, and the
// GPUs that the driver shows less those that the environment hides from us. It only looks.
#pragma once

#include "src/base/environment.hpp"
#include "src/plan/node_inventory.hpp"

namespace dlrun::agent {

enum class Gpus { asked, not_asked };

// Asking a GPU's driver can take seconds.
plan::NodeInventory take_inventory(const Environment& environment, Gpus gpus);

}  // namespace dlrun::agent
