#include "src/run/collectives.hpp"

namespace dlrun::job {

Collectives collectives_of(plan::RelayUse use, const plan::Plan& plan) {
  const bool served = plan.mpi == plan::MpiProtocol::pmix || plan.mpi == plan::MpiProtocol::pmi1;
  const std::size_t minimum = use == plan::RelayUse::on ? 2 : kMinNodesForTree;
  const bool tree = served && use != plan::RelayUse::off && plan.nodes.size() >= minimum;
  return tree ? Collectives::by_tree : Collectives::by_head;
}

}  // namespace dlrun::job
