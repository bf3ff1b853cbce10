#include "src/plan/facts.hpp"

#include <algorithm>
#include <array>

#include "src/base/strings.hpp"
#include "src/plan/gpu_view.hpp"
#include "src/plan/host_facts.hpp"
#include "src/plan/parallel_facts.hpp"
#include "src/plan/role_facts.hpp"

namespace dlrun::plan {
namespace {

constexpr std::array<FactInfo, 75> kFacts{{
    {"job.name", Scope::job, "the job's name"},
    {"job.id", Scope::job, "a name of this run that no other run has"},
    {"job.attempt", Scope::job, "1, and one more for each retry"},
    {"job.restarts", Scope::job, "the number of retries so far: 0 in the first attempt"},
    {"job.retries", Scope::job, "the maximum number of retries: launch.retries"},
    {"run.directory", Scope::job, "the run directory, absolute"},
    {"work.directory", Scope::job, "the folder in which the ranks start"},
    {"install.bin", Scope::job, "the folder of dlrun's own programs"},
    {"install.data", Scope::job, "the folder of dlrun's own data: frameworks, templates, Python files"},
    {"world.size", Scope::job, "the number of ranks"},
    {"node.count", Scope::job, "the number of nodes"},
    {"task.count", Scope::job, "the number of processes of the job, whoever starts them"},
    {"hostfile.openmpi", Scope::job, "a host file for Open MPI's mpirun: 'HOST slots=TASKS' per line"},
    {"hostfile.mpich", Scope::job, "a host file for MPICH's mpiexec: 'HOST:TASKS' per line"},
    {"hostfile.plain", Scope::job, "every host once, one per line"},
    {"hostfile.repeated", Scope::job, "every host as often as it has tasks, one per line (PBS, MVAPICH)"},
    {"hosts.slots", Scope::job, "HOST:TASKS of each node, in order (a list), as horovodrun -H takes it"},
    {"tasks.per-node", Scope::job, "tasks per node; no value if nodes differ"},
    {"gpus.per-node", Scope::job, "GPUs per node that the job asks for; no value if it asks for none"},
    {"gpus.tasks", Scope::job, "the number of tasks, if there are several and they have GPUs; else no value"},
    {"tensorflow.cluster", Scope::job,
     "the cluster part of TF_CONFIG, as JSON; no value if the framework has no roles"},
    {"node.hosts", Scope::job, "the nodes' host names, in order (a list)"},
    {"node.addresses", Scope::job, "the addresses by which nodes reach each other, in order (a list)"},
    {"rendezvous.host", Scope::job, "the host of rank 0; 127.0.0.1 if there is one node"},
    {"rendezvous.port", Scope::job, "a port on that host for the rendezvous of the ranks"},
    {"rendezvous.address", Scope::job, "both as HOST:PORT"},
    {"checkpoint.dir", Scope::job, "the folder of checkpoints, absolute; no value if the job has none"},
    {"train.config", Scope::job,
     "the section train of the job file with the source of each value, as JSON; builtin only"},
    {"parallel.tensor", Scope::job,
     "the number of ranks in each tensor-parallel group; facts parallel.* have no value without 'parallel'"},
    {"parallel.context", Scope::job, "the number of ranks in each context-parallel group"},
    {"parallel.expert", Scope::job, "the number of ranks in each expert-parallel group; no value if it is 1"},
    {"parallel.data", Scope::job, "the number of ranks in each data-parallel group"},
    {"parallel.pipeline", Scope::job, "the number of stages of the pipeline"},
    {"parallel.expert-data", Scope::job,
     "the number of ranks in each expert-data group: those that have the same experts"},
    {"parallel.pipeline-first", Scope::job,
     "the word true if pipeline is before data in the order (tp-cp-ep-pp-dp of Megatron-LM); else no value"},
    {"parallel.sequence", Scope::job,
     "\"on\" if the job asks for sequence parallelism in its tensor groups; otherwise no value"},
    {"parallel.mesh-shape", Scope::job,
     "the sizes of the pipeline, data, context and tensor groups, the slowest first (a list), for "
     "init_device_mesh"},
    {"parallel.mesh-names", Scope::job, "the names of these, in the same order (a list)"},
    {"parallel.groups", Scope::job, "the ranks of all groups of each kind, as JSON"},
    {"role.NAME.addresses", Scope::job, "HOST:PORT of each task of role NAME, in order (a list)"},
    {"role.NAME.hosts", Scope::job, "the host of each task of role NAME, in order (a list)"},
    {"role.NAME.count", Scope::job, "the number of tasks of role NAME; 0 if the job has none"},
    {"role.NAME.host", Scope::job, "the host of the first task of role NAME; no value if the job has none"},
    {"role.NAME.port", Scope::job, "its port; no value if the role opens none"},
    {"role.NAME.address", Scope::job, "its HOST:PORT"},
    {"role.NAME.lines", Scope::job, "HOST:PORT of each task of role NAME, one per line"},
    {"stage.NAME", Scope::job, "the path of item NAME of the section stage; no value if the job has none"},
    {"rank.index", Scope::rank, "the rank, from 0"},
    {"rank.local", Scope::rank, "the rank among the ranks of its node, from 0"},
    {"rank.node", Scope::rank, "the index of its node, from 0"},
    {"rank.role", Scope::rank, "its role; 'worker' if the framework has no roles"},
    {"rank.task-index", Scope::rank, "its index among the ranks of its role, from 0"},
    {"rank.port", Scope::rank, "its port; no value if its role has none"},
    {"rank.address", Scope::rank, "its HOST:PORT, as its peers reach it; no value if its role has no port"},
    {"rank.tensorflow-config", Scope::rank,
     "the value of TF_CONFIG: the addresses of every role, and the rank's own role and index"},
    {"rank.gpus", Scope::rank, "its GPUs (a list); no value if the job does not ask for GPUs"},
    {"rank.gpu-count", Scope::rank, "its number of GPUs; no value if it has none or the job asks for none"},
    {"rank.visible-gpus", Scope::rank,
     "its GPUs as indices into those that it sees (a list); no value if it has none"},
    {"rank.cpus", Scope::rank, "its number of cores; no value if that of the node is unknown"},
    {"rank.compute-cpus", Scope::rank, "its number of cores less the adapter's reserve-cpus, at least 1"},
    {"rank.reserved-cpus", Scope::rank, "the adapter's reserve-cpus, as far as the rank has cores for them"},
    {"rank.role-local", Scope::rank, "its index among the ranks of its role on its node, from 0"},
    {"rank.cross-index", Scope::rank,
     "its index among the ranks of its role that have the same index on their nodes, from 0"},
    {"rank.cross-size", Scope::rank, "the number of those ranks"},
    {"rank.tensor-index", Scope::rank,
     "its rank in its tensor-parallel group; this and the next five have no value without 'parallel'"},
    {"rank.context-index", Scope::rank, "its rank in its context-parallel group"},
    {"rank.expert-index", Scope::rank, "its rank in its expert-parallel group"},
    {"rank.data-index", Scope::rank, "its rank in its data-parallel group"},
    {"rank.pipeline-index", Scope::rank, "its stage of the pipeline, from 0"},
    {"rank.expert-data-index", Scope::rank, "its rank in its expert-data group"},
    {"node.host", Scope::rank, "the host name of its node"},
    {"node.address", Scope::rank, "the host name or address by which other nodes reach its node"},
    {"node.tasks", Scope::rank, "the number of processes of its node, whoever starts them"},
    {"node.ranks", Scope::rank, "the number of ranks on its node"},
    {"node.role-ranks", Scope::rank, "the number of those of its role"},
}};

yaml::Node text_node(std::string value, const JobSpec& spec, std::string_view path) {
  const std::string place = place_of(spec, path);
  yaml::Node node = yaml::scalar(std::move(value), place.empty() ? std::string(path) + " (default)" : place);
  node.style = yaml::Style::quoted;
  return node;
}

yaml::Node absolute_path(const yaml::Node& path, const JobSpec& spec) {
  yaml::Node out = path;
  if (path.kind != yaml::Kind::scalar || path.scalar.empty()) return out;
  out.scalar = (spec.base_directory / path.scalar).lexically_normal().string();
  out.style = yaml::Style::quoted;
  return out;
}

// The data's folder and lists are paths of the job file like any other: relative to the file.
void make_data_path_absolute(yaml::Node& train, const JobSpec& spec) {
  const yaml::Node* data = train.find("data");
  if (data == nullptr) return;
  yaml::Node changed = *data;
  for (const char* key : {"dir", "file", "list", "test-file", "test-list"}) {
    const yaml::Node* path = data->find(key);
    if (path == nullptr || path->kind != yaml::Kind::scalar || path->scalar.empty()) continue;
    changed.set(key, absolute_path(*path, spec));
  }
  train.set("data", std::move(changed));
}

// init-from is a file, or a map that has one.
void make_weights_path_absolute(yaml::Node& train, const JobSpec& spec) {
  const yaml::Node* from = train.find("init-from");
  if (from == nullptr) return;
  yaml::Node changed = absolute_path(*from, spec);
  const yaml::Node* file = from->kind == yaml::Kind::map ? from->find("file") : nullptr;
  if (file != nullptr) changed.set("file", absolute_path(*file, spec));
  train.set("init-from", std::move(changed));
}

yaml::Node checkpoint_node(const JobSpec& spec) {
  yaml::Node out;
  out.kind = yaml::Kind::map;
  out.source = place_of(spec, "checkpoint");
  out.set("dir", text_node(spec.checkpoint.dir, spec, "checkpoint.dir"));
  out.set("every", text_node(spec.checkpoint.every, spec, "checkpoint.every"));
  yaml::Node keep = text_node(std::to_string(spec.checkpoint.keep), spec, "checkpoint.keep");
  keep.style = yaml::Style::plain;
  out.set("keep", std::move(keep));
  return out;
}

}  // namespace

std::span<const FactInfo> all_facts() {
  return kFacts;
}

// Roles' names may have dots in them, the last word never has.
std::string role_of_fact(std::string_view fact) {
  const std::size_t last = fact.rfind('.');
  if (!fact.starts_with("role.") || last < sizeof "role." || last == std::string_view::npos) return {};
  return std::string(fact.substr(sizeof "role." - 1, last - (sizeof "role." - 1)));
}

const FactInfo* find_fact(std::string_view name) {
  std::string general(name);
  if (const std::string role = role_of_fact(name); !role.empty())
    general = "role.NAME" + general.substr(sizeof "role." - 1 + role.size());
  if (name.starts_with("stage.") && name.size() > sizeof "stage." - 1) general = "stage.NAME";
  const auto found =
      std::find_if(kFacts.begin(), kFacts.end(), [&](const FactInfo& fact) { return fact.name == general; });
  return found == kFacts.end() ? nullptr : &*found;
}

int rendezvous_port(std::string_view job_id, int attempt) {
  constexpr unsigned first = 20000, range = 10000;
  std::uint32_t hash = 2166136261U;  // FNV-1a: the same on every machine, which std::hash does not promise
  for (const char c : job_id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<int>(first + (hash % range + static_cast<unsigned>(attempt - 1)) % range);
}

Json train_config(const JobSpec& spec) {
  yaml::Node root;
  root.kind = yaml::Kind::map;
  root.source = spec.tree.source;
  root.set("name", text_node(spec.name, spec, "name"));
  yaml::Node train = spec.train;
  make_data_path_absolute(train, spec);
  make_weights_path_absolute(train, spec);
  root.set("train", std::move(train));
  if (!spec.checkpoint.dir.empty()) root.set("checkpoint", checkpoint_node(spec));
  return yaml::to_json_with_sources(root);
}

Facts facts_of_job(const Plan& plan, const JobSpec& spec, const Installation& installation,
                   const std::vector<int>& tasks) {
  const NodePlan& first = plan.nodes[static_cast<std::size_t>(plan.ranks.front().node.get())];
  Facts out;
  out["job.name"] = plan.name;
  out["job.id"] = plan.job_id;
  out["job.attempt"] = plan.attempt;
  out["job.restarts"] = plan.attempt - 1;
  out["job.retries"] = spec.launch.retries;
  out["run.directory"] = plan.run_directory;
  out["work.directory"] = plan.working_directory;
  out["install.bin"] = installation.bin.string();
  out["install.data"] = installation.data.string();
  out["world.size"] = plan.world_size();
  out["node.count"] = plan.nodes.size();
  for (const StageIn& item : plan.stage.items) out["stage." + item.name] = plan.stage.path_of(item);
  add_host_facts(out, plan, tasks);
  add_parallel_facts(out, plan);
  const std::string rendezvous = plan.nodes.size() == 1 ? "127.0.0.1" : first.reached_by();
  const int port = plan.rendezvous_port.value_or(rendezvous_port(plan.job_id, plan.attempt));
  out["rendezvous.host"] = rendezvous;
  out["rendezvous.port"] = port;
  out["rendezvous.address"] = host_and_port(rendezvous, port);
  const int gpus = spec.resources.gpus_per_node.value_or(0);
  out["gpus.per-node"] = gpus > 0 ? Json(gpus) : Json(nullptr);
  const int tasks_of_job = out["task.count"].get<int>();
  out["gpus.tasks"] = gpus > 0 && tasks_of_job > 1 ? Json(tasks_of_job) : Json(nullptr);
  out["checkpoint.dir"] = spec.checkpoint.dir.empty() ? Json(nullptr) : Json(spec.checkpoint.dir);
  out["train.config"] =
      spec.train.kind == yaml::Kind::null ? Json(nullptr) : Json(to_pretty_text(train_config(spec)));
  return out;
}

void set_facts_of_rank(Facts& facts, const Plan& plan, const RankPlan& rank, const RankShare& share) {
  facts["rank.index"] = rank.rank.get();
  facts["rank.local"] = rank.local_rank.get();
  facts["rank.node"] = rank.node.get();
  facts["rank.role"] = rank.role;
  facts["rank.task-index"] = rank.task_index;
  const NodePlan& node = plan.nodes[static_cast<std::size_t>(rank.node.get())];
  facts["rank.port"] = rank.port ? Json(*rank.port) : Json(nullptr);
  facts["rank.address"] = rank.port ? Json(rank_address(plan, rank)) : Json(nullptr);
  facts["node.address"] = node.reached_by();
  const auto cluster = facts.find("tensorflow.cluster");
  const bool has_roles = cluster != facts.end() && !cluster->second.is_null();
  facts["rank.tensorflow-config"] =
      has_roles ? Json(tensorflow_config(cluster->second, rank)) : Json(nullptr);
  facts["rank.gpus"] = rank.gpus ? Json(*rank.gpus) : Json(nullptr);
  const std::size_t gpus = rank.gpus ? rank.gpus->size() : 0;
  facts["rank.gpu-count"] = gpus > 0 ? Json(gpus) : Json(nullptr);
  facts["rank.visible-gpus"] = gpus > 0 ? Json(visible_positions(rank)) : Json(nullptr);
  facts["rank.cpus"] = share.cores ? Json(*share.cores) : Json(nullptr);
  const int reserved = share.cores ? std::clamp(*share.cores - 1, 0, share.reserve_cpus) : 0;
  facts["rank.compute-cpus"] = share.cores ? Json(*share.cores - reserved) : Json(nullptr);
  facts["rank.reserved-cpus"] = share.cores ? Json(reserved) : Json(nullptr);
  facts["rank.role-local"] = share.role_local;
  facts["rank.cross-index"] = share.cross_index;
  facts["rank.cross-size"] = share.cross_size;
  set_parallel_facts(facts, rank);
  facts["node.host"] = node.host.get();
  facts["node.tasks"] = share.node_tasks;
  facts["node.ranks"] = share.node_ranks;
  facts["node.role-ranks"] = share.role_ranks;
}

std::string fact_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return {};
  if (!value.is_array()) return dlrun::to_text(value);
  std::vector<std::string> items;
  for (const Json& item : value) items.push_back(fact_text(item));
  return join(items, ",");
}

}  // namespace dlrun::plan
