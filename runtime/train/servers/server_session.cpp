// See server_session.hpp.
#include "runtime/train/servers/server_session.hpp"

#include "runtime/comm/communicator.hpp"
#include "runtime/train/servers/parameter_server.hpp"
#include "runtime/train/servers/server_roles.hpp"
#include "runtime/train/session.hpp"
#include "runtime/train/stop_signal.hpp"
#include "src/base/exit_code.hpp"

namespace dlrun::runtime {
namespace {

Result<void> serve(const TrainSpec& spec, const ServerRoles& roles, Communicator& world) {
  const ServerPlace place{world.size() - roles.servers, roles.servers};
  TRY(world.split(1, world.rank()));  // as the workers make a group of theirs
  TRY(world.exchange_start([&](Transport& link) {
    return serve_parameters(link, place, spec.optimizer.optimizer, spec.allreduce.dtype);
  }));
  TRY(world.wait_all());
  return world.finish();
}

}  // namespace

int run_server_session(const TrainSpec& spec, const Environment& environment) {
  watch_stop_signals();
  std::unique_ptr<Communicator> world;
  const auto served = [&]() -> Result<void> {
    const ServerRoles roles = TRY(server_roles_of(environment));
    world = TRY(make_communicator(environment, spec.allreduce.choice));
    return serve(spec, roles, *world);
  }();
  if (served) return to_int(ExitCode::done);
  print_error(served.error());
  const int code = to_int(exit_code(served.error().kind));
  if (world) world->abort(code);
  return code;
}

}  // namespace dlrun::runtime
