// connect_to_rank(): connects to the port of another rank (rank_port.hpp) by the first of its addresses that
// answers and proves itself. Addresses are tried beside each other, each a little after the one before: one
// that is dead, or that leads to a stranger, holds nobody up.
#pragma once

#include "runtime/comm/transport/rank_port.hpp"

namespace dlrun::runtime {

/// `announcement`: what rank `peer` announced. An Error names every address that was tried and what came of
/// it.
Result<ConnectedRank> connect_to_rank(int own, int peer, const std::string& announcement,
                                      const StartLimits& limits = {});

}  // namespace dlrun::runtime
