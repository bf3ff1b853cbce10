// SshSpec: what a job says about reaching its nodes by ssh. Everything else is the business of the user's own
// ssh_config and known_hosts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/base/clock.hpp"
#include "src/base/enum_names.hpp"
#include "src/base/types.hpp"

namespace dlrun::plan {

// What becomes of a host whose key is in no known_hosts. A key that is another than the known one is an error
// in any case.
enum class HostKeys { strict, accept_new };

inline constexpr auto kHostKeys =
    enum_names<HostKeys>({{HostKeys::strict, "strict"}, {HostKeys::accept_new, "accept-new"}});
constexpr std::string_view name_of(HostKeys keys) {
  return kHostKeys.name(keys);
}

struct SshSpec {
  HostKeys host_keys = HostKeys::strict;
  std::string user;          // empty: ssh_config's, else our own name
  std::optional<Port> port;  // unset: that of ssh_config, else 22
  Seconds connect_timeout{10};
};

}  // namespace dlrun::plan
