// See server_settings.hpp.
#include "runtime/train/servers/server_settings.hpp"

#include "runtime/models/models.hpp"

namespace dlrun::runtime {
namespace {

struct Conflict {
  std::string key, what, hint;
};

std::string place_of(const std::map<std::string, std::string>& where, const std::string& key) {
  const auto found = where.find(key);
  return found == where.end() ? std::string() : found->second;
}

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
    return Conflict{"servers",
                    "train.parameter-server.servers is set, which counts servers that live on ranks",
                    "roles.ps.count is the number of servers of their own: keep one of the two"};
  if (optimizer.tensor_pass == nullptr && (servers.staleness == 0 || !spec.clip_norm)) return std::nullopt;
  if (servers.staleness > 0)
    return Conflict{
        "staleness",
        optimizer.tensor_pass != nullptr
            ? fmt::format("train.parameter-server.staleness is above 0 and train.optimizer is {}, "
                          "which needs the norm of the sum of all gradients",
                          optimizer.name)
            : "train.parameter-server.staleness is above 0, and train.clip-norm limits the norm "
              "of the sum of all gradients",
        "set staleness to 0"};
  if (servers.placement == Placement::split)
    return Conflict{"placement",
                    fmt::format("train.parameter-server.placement is split, and train.optimizer is {}, which "
                                "needs whole tensors",
                                optimizer.name),
                    "set placement to greedy"};
  return std::nullopt;
}

Result<void> refuse(const Conflict& conflict, const std::map<std::string, std::string>& where) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = conflict.what,
                    .where = place_of(where, conflict.key),
                    .hint = conflict.hint});
}

// What only servers of their own can do.
Result<void> check_servers_on_ranks(const ParameterServerSpec& spec) {
  const std::string hint = "add roles: {ps: {count: 2}} for servers of their own";
  if (spec.staleness > 0)
    return refuse(
        {"staleness", "train.parameter-server.staleness is above 0, and the servers live on ranks", hint},
        spec.where);
  if (spec.node_sum != ParameterServerSpec::NodeSum::automatic)
    return refuse({"node-sum", "train.parameter-server.node-sum is set, and the servers live on ranks", hint},
                  spec.where);
  return {};
}

}  // namespace

Result<void> use_server_processes(TrainSpec& spec, int servers) {
  if (servers == 0)
    return spec.parameter_server ? check_servers_on_ranks(*spec.parameter_server) : Result<void>{};
  if (auto conflict = conflict_of(spec)) {
    conflict->what = "roles.ps asks for parameter servers of their own, and " + conflict->what;
    return refuse(*conflict, spec.where);
  }
  if (!spec.parameter_server) spec.parameter_server.emplace();
  spec.parameter_server->processes = servers;
  const auto conflict = conflict_of_servers(spec, *spec.parameter_server);
  return conflict ? refuse(*conflict, spec.parameter_server->where) : Result<void>{};
}

}  // namespace dlrun::runtime
