// Slurm: sbatch. A job that is submitted from inside another must not inherit that one's variables: sbatch
// takes options from them, and hands them on to the new job.
#include <algorithm>
#include <cctype>

#include "schedulers/directive.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/slurm/queue_place.hpp"
#include "schedulers/slurm/slurm.hpp"
#include "schedulers/walltime.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

// %j and its like stand for something in sbatch's file names.
std::string percent_doubled(const std::string& path) {
  std::string out;
  for (const char c : path) out.append(c == '%' ? 2 : 1, c);
  return out;
}

// "123", "123;cluster" (--parsable), or the sentence without it.
std::string slurm_id(std::string_view line) {
  constexpr std::string_view sentence = "Submitted batch job ";
  const bool said = line.starts_with(sentence);
  if (said) line.remove_prefix(sentence.size());
  const std::string_view number = line.substr(0, line.find_first_of(said ? " " : ";"));
  const bool digits = !number.empty() && std::all_of(number.begin(), number.end(),
                                                     [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits ? std::string(number) : std::string();
}

bool is_final(std::string_view state) {
  for (const std::string_view name : {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL",
                                      "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "REVOKED"})
    if (state == name) return true;
  return false;
}

struct Partition {
  std::string name;
  std::int64_t nodes = 0;
  Walltime limit;
};

// The partition of the job, from `sinfo -h -o "%P %l %D"`; unset if it is not listed. A partition has a line
// for each kind of node.
std::optional<Partition> partition_of(std::string_view text, std::string_view wanted) {
  std::optional<Partition> out;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = split(trim(line), ' ');
    if (words.size() != 3) continue;
    const std::string name = words[0].substr(0, words[0].find('*'));
    if (wanted.empty() ? !words[0].ends_with('*') : name != wanted) continue;
    const auto limit = parse_slurm_walltime(words[1]);
    const auto nodes = parse_integer(words[2], 0, INT32_MAX);
    if (!limit || !nodes) return std::nullopt;
    if (!out) out = Partition{name, 0, *limit};
    out->nodes += *nodes;
  }
  return out;
}

tl::unexpected<Error> never(std::string what) {
  return fail(Error{.kind = ErrorKind::allocation,
                    .what = std::move(what) + ": the job would wait forever",
                    .where = {},
                    .hint = "sinfo shows the partitions, their limits and nodes",
                    .also = {}});
}

const OptionTable& slurm_options() {
  static const OptionTable table{
      .options = {{"job-name", {"-J", "--job-name"}},
                  {"chdir", {"-D", "--chdir", "--workdir"}},
                  {"output", {"-o", "--output"}},
                  {"open-mode", {"--open-mode"}},
                  {"nodes", {"-N", "--nodes"}},
                  {"ntasks-per-node", {"--ntasks-per-node"}},
                  {"cpus-per-task", {"-c", "--cpus-per-task"}},
                  {"GPUs", {"--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "--gpus", "-G"}},
                  {"gres", {"--gres"}},
                  {"time", {"-t", "--time"}},
                  {"partition", {"-p", "--partition"}},
                  {"account", {"-A", "--account"}},
                  {"memory", {"--mem", "--mem-per-cpu", "--mem-per-gpu"}},
                  {"constraint", {"-C", "--constraint"}},
                  {"qos", {"-q", "--qos"}},
                  {"exclusive", {"--exclusive", "-s", "--oversubscribe", "--share"}},
                  {"no-kill", {"-k", "--no-kill"}},
                  {"mail-user", {"--mail-user"}},
                  {"mail-type", {"--mail-type"}},
                  {"ntasks", {"-n", "--ntasks"}},
                  {"time-min", {"--time-min"}}},
      // sbatch takes the last --gres, so that one without GPUs would take dlrun's away.
      .parts = [](std::string_view subject, std::string_view value) {
        std::vector<std::string> out{std::string(subject)};
        if (subject == "gres" && value.find("gpu") != value.npos) out.emplace_back("GPUs");
        return out;
      }};
  return table;
}

std::string gres_of(const SubmissionRequest& request) {
  return request.gpu_type.empty() ? fmt::format("gpu:{}", request.gpus_per_node)
                                  : fmt::format("gpu:{}:{}", request.gpu_type, request.gpus_per_node);
}

// resources.extra names other generic resources, and GPUs are asked for by ours.
Result<void> check_gres(const SubmissionRequest& request) {
  if (request.gpus_per_node == 0) return {};
  for (const std::string& line : request.extra) {
    const auto value = option_value(trim(line), "--gres");
    if (!value || value->find("gpu") != value->npos) continue;
    return fail(Error{
        .kind = ErrorKind::input,
        .what = fmt::format(
            "resources.extra has --gres={}, which would replace the GPUs of resources.gpus-per-node", *value),
        .where = {},
        .hint = fmt::format("write both in one: --gres={},{}", gres_of(request), *value)});
  }
  return {};
}

// "END,FAIL"
std::string mail_types(const std::vector<std::string>& events) {
  std::vector<std::string> out;
  for (const std::string& event : events) {
    out.push_back(event);
    for (char& c : out.back()) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return join(out, ",");
}

// With a number of tasks, sbatch would ask for as many as the fewest nodes of a range have, and get no more
// nodes: so each node of a range is one large task.
void add_cpus(DirectiveList& out, const SubmissionRequest& request) {
  const int cpus = (request.min_nodes ? request.tasks_per_node : 1) * request.cpus_per_task;
  if (!request.min_nodes)
    out.add(fmt::format("--ntasks-per-node={}", request.tasks_per_node), "resources.tasks-per-node");
  out.add(fmt::format("--cpus-per-task={}", cpus), "resources.cpus-per-task");
}

class SlurmSubmission final : public Submission {
 public:
  std::string_view name() const override { return "slurm"; }
  std::string_view marker() const override { return "#SBATCH"; }

  Result<std::vector<Directive>> directives(const SubmissionRequest& request) const override {
    TRY(check_gres(request));
    DirectiveList out(marker());
    TRY(out.add_word("--job-name=", request.name, "name"));
    TRY(out.add_word("-D ", request.directory, "the working directory"));
    TRY(out.add_word("-o ", percent_doubled(request.output) + "/%j.out", "the output folder"));
    out.add("--open-mode=append");
    out.add("--nodes=" + node_count(request), "resources.nodes");
    add_cpus(out, request);
    if (request.gpus_per_node > 0) TRY(out.add_word("--gres=", gres_of(request), "resources.gpus-per-node"));
    if (request.memory) out.add(fmt::format("--mem={}M", mebibytes(*request.memory)), "resources.memory");
    if (request.exclusive) out.add("--exclusive", "resources.exclusive");
    if (!request.outlives_nodes.empty()) out.add("--no-kill", request.outlives_nodes);
    if (request.walltime) out.add("--time=" + clock_text(*request.walltime), "resources.walltime");
    if (request.unlimited) out.add("--time=UNLIMITED", "resources.walltime");
    TRY(out.add_word("--partition=", request.queue, "resources.queue"));
    TRY(out.add_word("--account=", request.account, "resources.account"));
    TRY(out.add_word("--qos=", request.qos, "resources.qos"));
    TRY(out.add_word("--constraint=", request.constraint, "resources.constraint"));
    TRY(out.add_word("--mail-user=", request.mail, "resources.mail"));
    if (!request.mail.empty()) out.add("--mail-type=" + mail_types(request.mail_events), "resources.mail");
    return std::move(out).with_extra(request, slurm_options());
  }

  // Its heterogeneous jobs are several allocations.
  std::vector<InexpressibleKey> inexpressible() const override {
    return {{"resources.chunks", "request equal nodes, with the maximum that one of them needs"}};
  }
  Argv submit_command(const std::string& script, const std::string& after) const override {
    Argv out{"sbatch", "--parsable"};
    if (!after.empty()) out.push_back("--dependency=afterany:" + after);
    out.push_back(script);
    return out;
  }
  Argv cancel_command(const std::string& job_id) const override { return {"scancel", job_id}; }
  Argv exclude_options(std::span<const HostName> nodes) const override {
    return {"--exclude=" + compress_hostlist(nodes)};
  }
  Argv exclude_command(const std::string& job_id, std::span<const HostName> nodes) const override {
    return {"scontrol", "update", "JobId=" + job_id, "ExcNodeList=" + compress_hostlist(nodes)};
  }
  bool names_nodes(std::string_view script) const override {
    for (const std::string& line : split(script, '\n')) {
      if (!line.starts_with(marker())) continue;
      const std::string_view option = trim(std::string_view(line).substr(marker().size()));
      for (const char* name : {"-x", "--exclude", "-w", "--nodelist", "-F", "--nodefile"})
        if (option_value(option, name)) return true;
    }
    return false;
  }
  Argv requeue_command(const std::string& job_id) const override { return {"scontrol", "requeue", job_id}; }
  std::string_view requeue_directive() const override { return "--requeue"; }
  std::optional<std::string> array_list(std::string_view option) const override {
    // sbatch takes a long option's beginning for it where no other begins like that.
    for (const char* name : {"-a", "--array", "--arra", "--arr", "--ar"})
      if (auto list = option_value(option, name)) return list;
    return std::nullopt;
  }
  std::string_view array_variable() const override { return "SLURM_ARRAY_TASK_ID"; }
  Argv state_command(const std::string& job_id) const override {
    return {"squeue", "-h", "-o", "%T", "-j", job_id};
  }
  std::optional<bool> is_alive(const CommandOutput& state) const override {
    if (!state.status.success())
      return state.err.find("Invalid job id") != std::string::npos ? std::optional(false) : std::nullopt;
    for (const char* word : {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING"})
      if (state.out.find(word) != std::string::npos) return true;
    return false;
  }
  std::optional<bool> is_pending_or_alive(const CommandOutput& state) const override {
    if (!state.status.success()) return is_alive(state);
    for (const std::string& line : split(state.out, '\n'))
      if (!trim(line).empty() && !is_final(trim(line))) return true;
    return false;
  }
  Argv hold_command(const std::string& job_id) const override {
    return {"squeue", "-h", "-o", "%r", "-j", job_id};
  }
  std::string why_held(const CommandOutput& state) const override {
    const std::string_view reason = trim(state.out);
    const bool held = reason == "DependencyNeverSatisfied" || reason.starts_with("JobHeld");
    return state.status.success() && held ? std::string(reason) : std::string();
  }
  Argv queue_command() const override { return slurm_queue_command(); }
  std::optional<QueuePlace> queue_place(const CommandOutput& queue, std::string_view job_id) const override {
    return queue.status.success() ? slurm_queue_place(queue.out, job_id) : std::nullopt;
  }
  std::string_view own_job_variable() const override { return "SLURM_JOB_ID"; }

  Result<std::string> job_id(std::string_view printed) const override {
    const std::string id = last_line_of_shape(printed, slurm_id);
    if (id.empty()) return fail(ErrorKind::unavailable, "sbatch printed no job id: '{}'", trim(printed));
    return id;
  }

  Result<void> check_possible(const SubmissionRequest& request, const Environment& environment,
                              const CommandRunner& commands) const override {
    const auto said = commands.run({.argv = {"sinfo", "-h", "-o", "%P %l %D"},
                                    .environment = this->environment(environment),
                                    .limit = Seconds(20)});
    if (!said || !said->status.success()) return {};
    const auto partition = partition_of(said->out, request.queue);
    if (!partition) return {};
    const std::int64_t nodes = partition->nodes - static_cast<std::int64_t>(request.excluded.size());
    if (fewest_nodes(request) > nodes)
      return never(fmt::format("partition {} has {} nodes and the job requests {}", partition->name, nodes,
                               node_count(request)));
    if (request.unlimited && partition->limit.limit)
      return never(fmt::format("partition {} ends jobs after {} and the job requests no limit",
                               partition->name, clock_text(*partition->limit.limit)));
    if (request.walltime && partition->limit.limit && *request.walltime > *partition->limit.limit)
      return never(fmt::format("partition {} ends jobs after {} and the job requests {}", partition->name,
                               clock_text(*partition->limit.limit), clock_text(*request.walltime)));
    return {};
  }

  std::vector<RefusalKeyword> refusal_keywords() const override {
    return {{"partition", "resources.queue"},
            {"account", "resources.account"},
            {"time limit", "resources.walltime"},
            {"--time", "resources.walltime"},
            {"qos", "resources.qos"},
            {"memory", "resources.memory", "--mem"},
            {"feature", "resources.constraint"},
            {"gres", "resources.gpu-type"},
            {"gres", "resources.gpus-per-node"},
            {"gpu", "resources.gpus-per-node"},
            {"cpu count", "resources.cpus-per-task"},
            {"node count", "resources.nodes"},
            {"more processors", "resources.nodes"},
            {"node configuration", "resources.nodes"}};
  }

 protected:
  Environment own_environment(Environment ours) const override {
    const auto configuration = ours.find("SLURM_CONF");  // where the controller is: no job's
    for (const std::string_view prefix : {"SLURM_", "SBATCH_", "SRUN_"}) ours.unset_prefix(prefix);
    if (configuration) ours.set("SLURM_CONF", *configuration);
    return ours;
  }
};

}  // namespace

std::unique_ptr<Submission> make_slurm_submission() {
  return std::make_unique<SlurmSubmission>();
}

}  // namespace dlrun
