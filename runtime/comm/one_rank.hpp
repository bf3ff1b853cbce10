// OneRank: the Communicator of a world of one. Every collective is done before it starts.
#pragma once

#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

std::unique_ptr<Communicator> make_one_rank_communicator();

}  // namespace dlrun::runtime
