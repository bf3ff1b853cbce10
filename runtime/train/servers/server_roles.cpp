// See server_roles.hpp.
#include "runtime/train/servers/server_roles.hpp"

#include "src/base/units.hpp"

namespace dlrun::runtime {

Result<ServerRoles> server_roles_of(const Environment& environment) {
  ServerRoles out;
  const auto told = environment.find("DLRUN_SERVERS");
  if (!told) return out;
  const auto servers = parse_integer(*told, 1, 1 << 20);
  const auto ranks = parse_integer(environment.get("DLRUN_SIZE"), 2, 1 << 30);
  if (!servers || !ranks || *servers >= *ranks)
    return fail(
        Error{.kind = ErrorKind::usage,
              .what = fmt::format("DLRUN_SERVERS is '{}', and DLRUN_SIZE '{}': there must be a server "
                                  "and a worker at least",
                                  *told, environment.get("DLRUN_SIZE")),
              .hint = "start all ranks by one dlrun"});
  out.servers = static_cast<int>(*servers);
  if (environment.get("DLRUN_ROLE") == "ps") out.own = ServerRoles::Own::server;
  return out;
}

}  // namespace dlrun::runtime
