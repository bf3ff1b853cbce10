// Slurm: sbatch. A job that is submitted from inside another must not inherit that one's variables: sbatch
// takes options from them, and hands them on to the new job.
#include <algorithm>
#include <cctype>

#include "schedulers/directive.hpp"
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

// The partition that the job would go to, of `sinfo -h -o "%P %l %D"`: nothing where that is not told. A
// partition has a line for each kind of node.
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
                    .what = std::move(what) + ": the job would wait for ever",
                    .where = {},
                    .hint = "sinfo shows the partitions, their limits and nodes",
                    .also = {}});
}

class SlurmSubmission final : public Submission {
 public:
  std::string_view name() const override { return "slurm"; }
  std::string_view marker() const override { return "#SBATCH"; }

  Result<std::vector<Directive>> directives(const SubmissionRequest& request) const override {
    DirectiveList out(marker());
    TRY(out.add_word("--job-name=", request.name, "name"));
    TRY(out.add_word("-D ", request.directory, "the working directory"));
    TRY(out.add_word("-o ", percent_doubled(request.output) + "/%j.out", "the output folder"));
    out.add("--open-mode=append");
    out.add(fmt::format("--nodes={}", request.nodes), "resources.nodes");
    out.add(fmt::format("--ntasks-per-node={}", request.tasks_per_node), "resources.tasks-per-node");
    out.add(fmt::format("--cpus-per-task={}", request.cpus_per_task), "resources.cpus-per-task");
    if (request.gpus_per_node > 0)
      out.add(fmt::format("--gres=gpu:{}", request.gpus_per_node), "resources.gpus-per-node");
    if (request.walltime) out.add("--time=" + clock_text(*request.walltime), "resources.walltime");
    TRY(out.add_word("--partition=", request.queue, "resources.queue"));
    TRY(out.add_word("--account=", request.account, "resources.account"));
    return std::move(out).with_extra(request);
  }

  Argv submit_command(const std::string& script, const std::string& after) const override {
    Argv out{"sbatch", "--parsable"};
    if (!after.empty()) out.push_back("--dependency=afterany:" + after);
    out.push_back(script);
    return out;
  }
  Argv cancel_command(const std::string& job_id) const override { return {"scancel", job_id}; }
  Argv stop_command(const std::string& job_id) const override {
    return {"scancel", "--batch", "--signal=TERM", job_id};
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
    if (request.nodes > partition->nodes)
      return never(fmt::format("partition {} has {} nodes and the job asks for {}", partition->name,
                               partition->nodes, request.nodes));
    if (request.walltime && partition->limit.limit && *request.walltime > *partition->limit.limit)
      return never(fmt::format("partition {} ends jobs after {} and the job asks for {}", partition->name,
                               clock_text(*partition->limit.limit), clock_text(*request.walltime)));
    return {};
  }

  std::vector<BlamedWord> blamed_words() const override {
    return {{"partition", "resources.queue"},         {"account", "resources.account"},
            {"time limit", "resources.walltime"},     {"--time", "resources.walltime"},
            {"gres", "resources.gpus-per-node"},      {"gpu", "resources.gpus-per-node"},
            {"cpu count", "resources.cpus-per-task"}, {"node count", "resources.nodes"},
            {"more processors", "resources.nodes"},   {"node configuration", "resources.nodes"}};
  }

  Environment environment(Environment ours) const override {
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
