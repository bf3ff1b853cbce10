// OpenPBS and PBS Pro: nodes and ranks from PBS_NODEFILE (one line per rank, full names, runs of one host
// apart); CPUs, GPUs and the end from qstat. PBS counts GPUs and does not name them: they are numbered from
// 0, as a job sees them inside its cgroup; CUDA_VISIBLE_DEVICES names those of the host it is set on and no
// other's.
#include "schedulers/pbs/pbs.hpp"

#include "schedulers/gpus/cuda_visible.hpp"
#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/node_identity.hpp"
#include "schedulers/pbs/job.hpp"
#include "schedulers/pbs/launch.hpp"
#include "schedulers/pbs/path.hpp"
#include "schedulers/query.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

std::vector<HostName> host_names(const std::vector<AllocatedNode>& nodes) {
  std::vector<HostName> out;
  for (const AllocatedNode& node : nodes) out.push_back(node.host);
  return out;
}

std::optional<PbsJob> ask_server(const DiscoveryContext& context, Allocation& out) {
  if (!out.job_id) return std::nullopt;
  const Environment environment = with_pbs_path(context.environment);
  const DiscoveryContext with_path{environment, context.commands, context.clock, {}};
  const auto text = ask_scheduler(with_path, {"qstat", "-f", "-F", "json", *out.job_id});
  const auto job = text ? parse_qstat(*text, *out.job_id) : fail(text.error());
  if (job) return *job;
  out.evidence.push_back(
      fmt::format("no answer from an OpenPBS qstat ({}): GPUs and end unknown", job.error().what));
  return std::nullopt;
}

// Where the node file is empty (mpiprocs=0), the chunks tell the nodes: a slot for each CPU.
Result<std::vector<AllocatedNode>> nodes_of_chunks(const std::vector<PbsChunk>& chunks) {
  std::vector<AllocatedNode> entries;
  for (const PbsChunk& chunk : chunks)
    entries.push_back(
        {.host = HostName(chunk.host), .slots = std::max(chunk.cpus, 1), .cpus = {}, .gpus = {}});
  return group_nodes(entries, "exec_vnode");
}

Result<std::vector<AllocatedNode>> find_nodes(const NamedFile& file, const std::optional<PbsJob>& job,
                                              Allocation& out) {
  out.evidence.push_back("PBS_NODEFILE=" + file.path);
  if (!word_lines(file.text).empty() || !job || job->chunks.empty()) {
    std::vector<AllocatedNode> nodes = TRY(nodes_of_lines(file.text, file.path));
    for (AllocatedNode& node : nodes) node.asked_slots = node.slots;  // mpiprocs, or one rank per chunk
    return nodes;
  }
  out.evidence.emplace_back("the node file is empty (mpiprocs=0): nodes from exec_vnode, one slot per CPU");
  out.warnings.emplace_back(
      "the job has mpiprocs=0, and PBS then starts nothing on its nodes: use --via ssh, or ask for mpiprocs");
  return nodes_of_chunks(job->chunks);
}

// Adds the chunks to the nodes. Where whole nodes are granted, PBS often does not count their GPUs. A node
// that no chunk names contradicts the node file; a chunk without a node has no rank (mpiprocs=0).
Result<void> add_chunks(const std::vector<PbsChunk>& chunks, const std::string& file, Allocation& out) {
  const std::vector<HostName> names = host_names(out.nodes);
  const NodeFinder finder(names);
  std::vector<std::pair<int, int>> granted(names.size());
  std::vector<bool> seen(names.size(), false);
  std::string text;
  for (const PbsChunk& chunk : chunks) {
    text += (text.empty() ? "" : " ") + chunk.host;
    const auto at = TRY(finder.find(chunk.host));
    if (!at) {
      out.evidence.push_back(
          fmt::format("exec_vnode lists {} and the node file does not: no rank there", chunk.host));
      continue;
    }
    seen[*at] = true;
    granted[*at].first += chunk.cpus;
    granted[*at].second += chunk.gpus.value_or(0);
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!seen[i])
      return fail(conflict("PBS's node file and its exec_vnode",
                           fmt::format("{}: {}", file, describe(out.nodes)), "exec_vnode: " + text));
  const bool names_gpus =
      std::any_of(chunks.begin(), chunks.end(), [](const PbsChunk& chunk) { return chunk.gpus.has_value(); });
  for (std::size_t i = 0; i < names.size(); ++i) {
    out.nodes[i].cpus = granted[i].first;
    if (!names_gpus) continue;
    std::vector<std::string> gpus;
    for (int gpu = 0; gpu < granted[i].second; ++gpu) gpus.push_back(std::to_string(gpu));
    out.nodes[i].gpus = std::move(gpus);
  }
  out.evidence.emplace_back(
      names_gpus
          ? "exec_vnode: CPUs and GPUs of all nodes; PBS does not name GPUs: numbered from 0"
          : "exec_vnode: CPUs of all nodes; no chunk has ngpus, so PBS does not tell of GPUs: unknown");
  return {};
}

// The cgroups hook sets it for the host that the script runs on.
Result<void> add_visible(const Environment& environment, Allocation& out) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (!visible) return {};
  const auto at =
      parse_integer(environment.get("PBS_NODENUM", "0"), 0, static_cast<int>(out.nodes.size()) - 1);
  if (!at) return {};
  AllocatedNode& node = out.nodes[static_cast<std::size_t>(*at)];
  VisibleGpus seen = read_cuda_visible(*visible);
  if (node.gpus && node.gpus->size() != seen.names.size())
    out.warnings.push_back(
        fmt::format("CUDA_VISIBLE_DEVICES={} shows {} GPUs on {}, and exec_vnode grants {}", *visible,
                    seen.names.size(), node.host, node.gpus->size()));
  if (seen.warning) out.warnings.push_back(*seen.warning);
  node.gpus = std::move(seen.names);
  out.evidence.push_back(fmt::format("CUDA_VISIBLE_DEVICES={}: of {} alone", *visible, node.host));
  return {};
}

void take_end(const PbsJob& job, Allocation& out) {
  out.end_time = job.end_time;
  out.evidence.emplace_back(job.end_time    ? "qstat: stime and walltime: end " + format_utc(*job.end_time)
                            : job.unlimited ? "qstat: no walltime: no limit"
                                            : "qstat does not report the end: unknown");
}

std::string detect_pbs(const DiscoveryContext& context) {
  for (const std::string_view mark : {"PBS_JOBID", "PBS_NODEFILE"})
    if (const auto value = context.environment.find(mark)) return fmt::format("{}={}", mark, *value);
  return {};
}

Result<Allocation> pbs_allocation(const DiscoveryContext& context) {
  const Environment& environment = context.environment;
  Allocation out;
  out.scheduler = "pbs";
  out.job_id = environment.find("PBS_JOBID");
  if (const auto index = parse_integer(environment.get("PBS_ARRAY_INDEX"), 0, INT32_MAX))
    out.array_index = static_cast<int>(*index);
  const NamedFile file = TRY(file_of_variable(environment, "PBS_NODEFILE"));
  const auto job = ask_server(context, out);
  out.nodes = TRY(find_nodes(file, job, out));
  if (job && !job->chunks.empty()) TRY(add_chunks(job->chunks, file.path, out));
  TRY(add_visible(environment, out));
  if (job) take_end(*job, out);
  return out;
}

bool is_batch_job(const Environment& environment) {
  return environment.get("PBS_ENVIRONMENT") == "PBS_BATCH";
}

std::vector<EndQuestion> pbs_end_questions(const std::string& job_id) {
  const auto read = [job_id](const std::string& answer) -> Result<std::optional<Instant>> {
    const PbsJob job = TRY(parse_qstat(answer, job_id));
    if (!job.unlimited && !job.end_time) return no_end_told("qstat", job_id);
    return job.end_time;
  };
  const auto left = [job_id](const std::string& answer) -> std::optional<Seconds> {
    const auto job = parse_qstat(answer, job_id);
    return job ? job->walltime_left : std::nullopt;
  };
  return {{{"qstat", "-f", "-F", "json", job_id}, read, left}};
}

}  // namespace

bool is_openpbs(const ProgramText& qsub) {
  return qsub.of("--version").find("pbs_version") != std::string::npos;
}

Scheduler pbs_scheduler() {
  return {.name = "pbs",
          .title = "PBS",
          .detect = detect_pbs,
          .allocation = pbs_allocation,
          .submission = make_pbs_submission,
          .submit_program = "qsub",
          .owns_submit_program = is_openpbs,
          .submit_host = {.variable = "PBS_CONF_FILE", .files = {"/etc/pbs.conf"}},
          .end_questions = pbs_end_questions,
          .launcher = begin_pbs_launcher,
          .variables = {.prefixes = {"PBS_"},
                        .drop_for_submit = {"PBS_"},
                        .keep_for_submit = {"PBS_CONF_FILE", "PBS_EXEC", "PBS_HOME", "PBS_SERVER",
                                            "PBS_DEFAULT", "PBS_PRIMARY"},
                        .node_local = {"PBS_NODENUM", "PBS_TASKNUM", "PBS_MOMPORT", "PBS_JOBCOOKIE"},
                        .per_node = {"PBS_JOBDIR", "PBS_NODENUM", "PBS_TASKNUM", "PBS_VNODENUM"},
                        .is_batch_job = is_batch_job,
                        .for_programs = with_pbs_path}};
}

}  // namespace dlrun
