// A JobSpec as JSON, under the job file's own keys: for people, records and comparison. Durations are
// seconds.
#include "src/base/json.hpp"
#include "src/base/units.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/secret_words.hpp"
#include "src/plan/secrets.hpp"

namespace dlrun::plan {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json walltime_json(const std::optional<Seconds>& walltime) {
  if (!walltime) return nullptr;
  return *walltime == kUnlimited ? Json("UNLIMITED") : Json(walltime->count());
}

Json chunks_json(const std::vector<NodeChunk>& chunks) {
  Json out = Json::array();
  for (const NodeChunk& chunk : chunks)
    out.push_back({{"nodes", chunk.nodes},
                   {"cpus", or_null(chunk.cpus)},
                   {"gpus", or_null(chunk.gpus)},
                   {"memory", or_null(chunk.memory)}});
  return out;
}

Json nodes_json(const Resources& resources) {
  if (!resources.min_nodes) return or_null(resources.nodes);
  return fmt::format("{}-{}", *resources.min_nodes, resources.nodes.value_or(*resources.min_nodes));
}

Json to_json(const Resources& resources) {
  return {{"nodes", nodes_json(resources)},
          {"gpus-per-node", or_null(resources.gpus_per_node)},
          {"tasks-per-node", or_null(resources.tasks_per_node)},
          {"cpus-per-task", or_null(resources.cpus_per_task)},
          {"walltime", walltime_json(resources.walltime)},
          {"queue", resources.queue},
          {"account", resources.account},
          {"memory", or_null(resources.node.memory)},
          {"gpu-type", resources.node.gpu_type},
          {"constraint", resources.node.constraint},
          {"exclusive", resources.node.exclusive},
          {"chunks", chunks_json(resources.chunks)},
          {"qos", resources.qos},
          {"mail", resources.mail},
          {"mail-events", resources.mail_events},
          {"extra", resources.extra}};
}

Json to_json(const std::vector<RoleSpec>& roles) {
  Json out = Json::object();
  for (const RoleSpec& role : roles)
    out[role.name] = {
        {"count", or_null(role.count)},
        {"per-node", or_null(role.per_node)},
        {"gpus", or_null(role.gpus)},
        {"port", or_null(role.port)},
        {"placement", role.placement ? Json(kPlacements.name(*role.placement)) : Json(nullptr)}};
  return out;
}

Json to_json(const JobEnvironment& environment) {
  Json container = nullptr;
  if (environment.container)
    container = {{"image", environment.container->image},
                 {"engine", environment.container->engine},
                 {"mounts", environment.container->mounts}};
  EnvironmentChanges set = environment.set;
  for (auto& [name, value] : set)
    if (is_secret(name, environment.rules.secrets)) value = kHidden;
  std::vector<std::string> setup = environment.setup;
  for (std::string& line : setup) line = without_secret_values(line, environment.rules.secrets);
  return {{"module-paths", environment.module_paths},
          {"modules", environment.modules},
          {"activate", environment.activate},
          {"setup", std::move(setup)},
          {"set", std::move(set)},
          {"defaults", environment.defaults},
          {"allow", environment.rules.allow},
          {"deny", environment.rules.deny},
          {"secrets", environment.rules.secrets},
          {"container", std::move(container)}};
}

Json to_json(const std::optional<Wrap>& wrap) {
  if (!wrap) return nullptr;
  Json ranks = Json::array();
  for (const Rank rank : wrap->ranks) ranks.push_back(rank.get());
  return {{"command", wrap->command}, {"ranks", std::move(ranks)}};
}

Json to_json(const SshSpec& ssh) {
  return {{"host-keys", name_of(ssh.host_keys)},
          {"user", ssh.user},
          {"port", ssh.port ? Json(ssh.port->get()) : Json()},
          {"connect-timeout", ssh.connect_timeout.count()}};
}

Json to_json(const std::vector<GroupKind>& kinds) {
  Json out = Json::array();
  for (const GroupKind kind : kinds) out.push_back(name_of(kind));
  return out;
}

// With the names of keys.
Json stage_json(const std::vector<StageIn>& items) {
  Json out = Json::array();
  for (const StageIn& item : items)
    out.push_back({{"from", item.from},
                   {"to", item.to},
                   {"as", item.name},
                   {"unpack", item.unpack},
                   {"reuse", item.reuse},
                   {"time-limit", item.time_limit.count()}});
  return out;
}

Json to_json(const ParallelSpec& parallel) {
  return {{"tensor", parallel.tensor},
          {"pipeline", parallel.pipeline},
          {"context", parallel.context},
          {"expert", parallel.expert},
          {"order", to_json(parallel.order)},
          {"within-node", to_json(parallel.within_node)},
          {"sequence", parallel.sequence == SequenceParallel::on ? "on" : "off"}};
}

}  // namespace

Json to_json(const JobSpec& spec) {
  Json out{{"schema", "dlrun.job/1"},
           {"name", spec.name},
           {"framework", spec.framework},
           {"resources", to_json(spec.resources)},
           {"roles", to_json(spec.roles)},
           {"command", without_secret_values(spec.command, spec.environment.rules.secrets)},
           {"environment", to_json(spec.environment)},
           {"launch",
            {{"via", spec.launch.via},
             {"fan-out", spec.launch.fan_out},
             {"start-timeout", spec.launch.start_timeout.count()},
             {"setup-timeout", spec.launch.setup_timeout.count()},
             {"grace", spec.launch.grace.count()},
             {"lost-after", spec.launch.lost_after.count()},
             {"no-output-limit", spec.launch.no_output.count()},
             {"no-progress-limit", spec.launch.no_progress.count()},
             {"finalize-limit", spec.launch.finalize.count()},
             {"retries", spec.launch.retries},
             {"mpi", spec.launch.mpi},
             {"bind", spec.launch.bind},
             {"relay", name_of(spec.launch.relay)},
             {"check", name_of(spec.launch.check)},
             {"bad-node-memory", spec.launch.bad_node_memory.count()},
             {"wrap", to_json(spec.launch.wrap)},
             {"metrics-file", spec.launch.metrics_file},
             {"stage", spec.launch.stage},
             {"ssh", to_json(spec.launch.ssh)}}},
           {"checkpoint",
            {{"dir", spec.checkpoint.dir},
             {"files", spec.checkpoint.files},
             {"every", spec.checkpoint.every},
             {"keep", spec.checkpoint.keep},
             {"request", spec.checkpoint.request},
             {"lead", spec.checkpoint.lead}}},
           {"chain",
            {{"max-links", or_null(spec.chain.max_links)},
             {"retries", spec.chain.retries},
             {"mode", spec.chain.mode},
             {"mtbf", spec.chain.mtbf ? Json(spec.chain.mtbf->count()) : Json(nullptr)}}},
           {"train", yaml::to_json(spec.train)},
           {"base-directory", spec.base_directory.string()}};
  if (!spec.launch.memory.numa.empty()) out["launch"]["memory"] = spec.launch.memory.numa;
  if (spec.launch.memory.huge_pages != HugePages::as_the_system)
    out["launch"]["huge-pages"] = kHugePages.name(spec.launch.memory.huge_pages);
  if (!spec.stage.empty()) out["stage"] = stage_json(spec.stage);
  if (spec.parallel) out["parallel"] = to_json(*spec.parallel);
  if (spec.elastic)
    out["elastic"] = {{"min-nodes", spec.elastic->min_nodes},
                      {"min-ranks", spec.elastic->min_ranks},
                      {"restarts", spec.elastic->restarts}};
  return out;
}

}  // namespace dlrun::plan
