// Grid Engine (SGE, Son of Grid Engine, Univa): PE_HOSTFILE, one line per node: name, slots, queue, processor
// range. Only the first two columns say anything about us; a node that stands in several queues has several
// lines. A line without a slot count is skipped with a warning that names it: Grid Engine granted it nothing.
// A job outside of a parallel environment has no such file and one slot: it is this machine as any other,
// with an id and an end. The end is the start and h_rt or s_rt, the job's own or its queue's.
#include "schedulers/gridengine/gridengine.hpp"

#include "schedulers/gridengine/job.hpp"
#include "schedulers/gridengine/launch.hpp"
#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/local/local.hpp"
#include "schedulers/query.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

Result<std::vector<AllocatedNode>> read_lines(const NamedFile& file, Allocation& out) {
  std::vector<AllocatedNode> entries;
  for (const WordLine& line : word_lines(file.text)) {
    const std::string place = fmt::format("{}:{}", file.path, line.number);
    if (auto good = check_host_name(line.words[0]); !good) return fail(about_allocation(good.error(), place));
    if (line.words.size() == 1) {
      out.warnings.push_back(
          fmt::format("{}: node {} has no slot count and is left out", place, line.words[0]));
      continue;
    }
    const auto slots = parse_integer(line.words[1], 0, kMaxSlots);
    if (!slots) return fail(unreadable(fmt::format("'{}' is not a slot count", line.words[1]), place));
    if (*slots == 0) {
      out.warnings.push_back(fmt::format("{}: node {} has 0 slots and is left out", place, line.words[0]));
      continue;
    }
    entries.push_back(
        {.host = HostName(line.words[0]), .slots = static_cast<int>(*slots), .cpus = {}, .gpus = {}});
  }
  if (entries.empty()) return fail(unreadable("the file lists no node", file.path));
  return group_nodes(entries, file.path);
}

// NSLOTS is the sum that Grid Engine tells beside the file.
Result<void> check_total(const Environment& environment, const NamedFile& file,
                         const std::vector<AllocatedNode>& nodes) {
  const auto told = environment.find("NSLOTS");
  if (!told) return {};
  std::int64_t sum = 0;
  for (const AllocatedNode& node : nodes) sum += node.slots;
  if (*told == std::to_string(sum)) return {};
  return fail(conflict("NSLOTS and PE_HOSTFILE", "NSLOTS=" + *told,
                       fmt::format("{}: {} slots: {}", file.path, sum, describe(nodes))));
}

// A job outside of a parallel environment. Where Grid Engine tells of more hosts, its file of them got lost:
// one node of several is not to be taken for all.
Result<Allocation> serial_job(const DiscoveryContext& context) {
  const std::string hosts = context.environment.get("NHOSTS", "1");
  if (hosts != "1")
    return fail(conflict("NHOSTS and PE_HOSTFILE", "NHOSTS=" + hosts, "PE_HOSTFILE is not set"));
  return local_allocation(context);
}

Result<Allocation> parallel_job(const DiscoveryContext& context) {
  const NamedFile file = TRY(file_of_variable(context.environment, "PE_HOSTFILE"));
  Allocation out;
  out.nodes = TRY(read_lines(file, out));
  TRY(check_total(context.environment, file, out.nodes));
  out.evidence = {fmt::format("PE_HOSTFILE={}: {} nodes", file.path, out.nodes.size()),
                  "Grid Engine does not report the GPUs of a job: unknown"};
  return out;
}

// A queue that does not tell its limits leaves those that the job asked for.
Result<Walltime> limit_of(const DiscoveryContext& context, const GridEngineJob& job, const HostName& host) {
  const std::string queue = fmt::format("{}@{}", context.environment.get("QUEUE"), host);
  const auto lines = ask_scheduler(context, {"qconf", "-sq", queue});
  const auto limit = lines ? parse_gridengine_queue(*lines) : fail(lines.error());
  if (!limit && !job.limit.limit) return fail(limit.error());
  return limit ? sooner_of(job.limit, *limit) : job.limit;
}

Result<std::string> end_by_start_and_limit(const DiscoveryContext& context, Allocation& out) {
  if (!out.job_id) return fail(ErrorKind::allocation, "JOB_ID is not set");
  const std::string answer = TRY(ask_scheduler(context, {"qstat", "-xml", "-j", *out.job_id}));
  const GridEngineJob job = TRY(parse_gridengine_job(answer, *out.job_id, out.array_index));
  const Walltime limit = TRY(limit_of(context, job, out.nodes.front().host));
  if (!limit.limit)
    return std::string("qstat and qconf: neither the job nor its queue has h_rt or s_rt: no limit");
  out.end_time = job.start + *limit.limit;
  return fmt::format("qstat and qconf: start and the sooner of h_rt and s_rt: end {}",
                     format_utc(*out.end_time));
}

std::string detect_gridengine(const DiscoveryContext& context) {
  for (const std::string_view mark : {"PE_HOSTFILE", "SGE_JOB_SPOOL_DIR"})
    if (const auto value = context.environment.find(mark)) return fmt::format("{}={}", mark, *value);
  return {};
}

Result<Allocation> gridengine_allocation(const DiscoveryContext& context) {
  const Environment& environment = context.environment;
  const bool serial = !environment.find("PE_HOSTFILE") && environment.find("SGE_JOB_SPOOL_DIR");
  Allocation out = TRY(serial ? serial_job(context) : parallel_job(context));
  out.scheduler = "gridengine";
  out.job_id = environment.find("JOB_ID");
  if (const auto task = parse_integer(environment.get("SGE_TASK_ID"), 0, INT32_MAX))
    out.array_index = static_cast<int>(*task);
  const auto end = end_by_start_and_limit(context, out);
  out.evidence.push_back(end ? *end : fmt::format("the end is unknown: {}", end.error().what));
  return out;
}

// Four schedulers have a qsub, and Slurm has one that is made of sbatch.
bool owns_qsub(const ProgramText& qsub) {
  const std::string& help = qsub.of("-help");
  return help.starts_with("ge ") || help.starts_with("sge ") || help.starts_with("uge ") ||
         help.find("-pe pe-name") != help.npos;
}

}  // namespace

Scheduler gridengine_scheduler() {
  return {.name = "gridengine",
          .title = "Grid Engine",
          .aliases = {"sge"},
          .detect = detect_gridengine,
          .allocation = gridengine_allocation,
          .slot_unit = SlotUnit::cores,
          .submission = make_gridengine_submission,
          .submit_program = "qsub",
          .owns_submit_program = owns_qsub,
          .submit_host = {.variable = "SGE_ROOT"},
          .launcher = begin_gridengine_launcher,
          .variables = {
              .prefixes = {"SGE_"},
              .names = {"JOB_ID"},
              .drop_for_submit = {"PE_HOSTFILE", "SGE_TASK_", "SGE_JOB_", "SGE_O_", "NSLOTS", "NHOSTS"},
              .is_batch_job =
                  [](const Environment& environment) { return environment.get("ENVIRONMENT") == "BATCH"; },
              .warns_by_user_signals = "SGE_JOB_SPOOL_DIR"}};
}

}  // namespace dlrun
