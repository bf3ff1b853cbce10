// RelayUse: what a job says about the tree through which its agents pass the data of MPI's collectives.
#pragma once

#include <string_view>

#include "src/base/enum_names.hpp"

namespace dlrun::plan {

// automatic: where the nodes are many.
enum class RelayUse { automatic, on, off };

inline constexpr auto kRelayUses =
    enum_names<RelayUse>({{RelayUse::automatic, "auto"}, {RelayUse::on, "on"}, {RelayUse::off, "off"}});
constexpr std::string_view name_of(RelayUse use) {
  return kRelayUses.name(use);
}

}  // namespace dlrun::plan
