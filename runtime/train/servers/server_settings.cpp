// See server_settings.hpp.
#include "runtime/train/servers/server_settings.hpp"

#include "runtime/models/models.hpp"

namespace dlrun::runtime {
namespace {

struct Conflict {
  std::string key, what, hint;
};

// What adds gradients in an order of its own, or has or changes the optimizer's state elsewhere.
std::optional<Conflict> conflict_of(const TrainSpec& spec) {
  const std::string remove_roles = "remove roles.ps";
  if (spec.shards)
    return Conflict{"shards", "train.shards is set: shards are added in an order of their own", remove_roles};
  if (spec.sync)
    return Conflict{"sync", "train.sync is set: ranks update their own weights between two averages",
                    remove_roles};
  if (spec.optimizer.state == OptimizerSpec::State::sharded)
    return Conflict{"optimizer", "train.optimizer.state is sharded: the state is the servers'",
                    "set train.optimizer.state to replicated, or " + remove_roles};
  if (purpose_of(spec.model) == Purpose::generate)
    return Conflict{"model", fmt::format("{} is a GAN, for which that is not supported", spec.model),
                    remove_roles};
  if (spec.ema)
    return Conflict{"ema", "train.ema is set: servers keep no averages of weights", "remove train.ema"};
  if (!spec.allreduce.choice.is_auto() && !spec.allreduce.choice.is("parameter-server"))
    return Conflict{"allreduce", spec.allreduce.choice.text() + ": gradients go to the servers",
                    "set it to auto"};
  return std::nullopt;
}

std::optional<Conflict> conflict_of_servers(const TrainSpec& spec, const ParameterServerSpec& servers) {
  const OptimizerTraits& optimizer = *spec.optimizer.optimizer.traits;
  if (servers.servers)
    return Conflict{"parameter-server.servers",
                    "train.parameter-server.servers is set, which counts servers that live on ranks",
                    "roles.ps.count is the number of servers of their own: keep one of the two"};
  if (optimizer.tensor_pass == nullptr && (servers.staleness == 0 || !spec.clip_norm)) return std::nullopt;
  if (servers.staleness > 0)
    return Conflict{
        "parameter-server.staleness",
        optimizer.tensor_pass != nullptr
            ? fmt::format("train.parameter-server.staleness is above 0 and train.optimizer is {}, "
                          "which needs the norm of the sum of all gradients",
                          optimizer.name)
            : "train.parameter-server.staleness is above 0, and train.clip-norm limits the norm "
              "of the sum of all gradients",
        "set staleness to 0"};
  if (servers.placement == Placement::split)
    return Conflict{"parameter-server.placement",
                    fmt::format("train.parameter-server.placement is split, and train.optimizer is {}, which "
                                "needs whole tensors",
                                optimizer.name),
                    "set placement to greedy"};
  return std::nullopt;
}

Result<void> refuse(const Conflict& conflict, const TrainSpec& spec) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = conflict.what,
                    .where = spec.place_of(conflict.key),
                    .hint = conflict.hint});
}

// What only servers of their own can do.
Result<void> check_servers_on_ranks(const TrainSpec& spec) {
  const std::string hint = "add roles: {ps: {count: 2}} for servers of their own";
  if (spec.parameter_server->staleness > 0)
    return refuse({"parameter-server.staleness",
                   "train.parameter-server.staleness is above 0, and the servers live on ranks", hint},
                  spec);
  if (spec.parameter_server->node_sum != ParameterServerSpec::NodeSum::automatic)
    return refuse({"parameter-server.node-sum",
                   "train.parameter-server.node-sum is set, and the servers live on ranks", hint},
                  spec);
  return {};
}

}  // namespace

Result<void> use_server_processes(TrainSpec& spec, int servers) {
  if (servers == 0) return spec.parameter_server ? check_servers_on_ranks(spec) : Result<void>{};
  if (auto conflict = conflict_of(spec)) {
    conflict->what = "roles.ps asks for parameter servers of their own, and " + conflict->what;
    return refuse(*conflict, spec);
  }
  if (!spec.parameter_server) spec.parameter_server.emplace();
  spec.parameter_server->processes = servers;
  const auto conflict = conflict_of_servers(spec, *spec.parameter_server);
  return conflict ? refuse(*conflict, spec) : Result<void>{};
}

}  // namespace dlrun::runtime
