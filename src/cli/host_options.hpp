// The flags that name hosts: the user's own list in place of a scheduler's.
#pragma once

#include <span>
#include <string>

#include "schedulers/scheduler.hpp"
#include "src/cli/flag.hpp"

namespace dlrun::cli {

struct HostOptions {
  std::string hostfile, private_hostfile, hosts;  // empty where not given

  NamedHosts named() const;
};

std::span<const FlagRow<HostOptions>> host_flags();

}  // namespace dlrun::cli
