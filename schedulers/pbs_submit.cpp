// OpenPBS and PBS Pro (qsub -l select) and Torque (qsub -l nodes). Both read a comma or a quote in `qsub -v`
// as their own, so nothing is passed that way: what a job needs stands in its script. A script's directives
// win over nothing and are each written once: of two `-l walltime` lines PBS takes the first.
#include <algorithm>
#include <cctype>

#include "schedulers/directive.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

// Job names of PBS have no blanks and start with a letter; Torque's are short.
std::string pbs_name(std::string_view name, std::size_t longest) {
  std::string out(name.substr(0, longest));
  if (!out.empty() && std::isalpha(static_cast<unsigned char>(out.front())) == 0)
    out = ("j" + out).substr(0, longest);
  return out;
}

bool digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "123.server", "123[].server"; a bare number where Slurm's look-alike of qsub answers.
std::string pbs_id(std::string_view line) {
  const std::string_view number = line.substr(0, line.find_first_not_of("0123456789"));
  std::string_view rest = line.substr(number.size());
  if (rest.starts_with("[]")) rest.remove_prefix(2);
  const bool host = rest.empty() || (rest.size() > 1 && rest.front() == '.' &&
                                     std::all_of(rest.begin(), rest.end(), [](unsigned char c) {
                                       return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
                                     }));
  return digits(number) && host ? std::string(line) : std::string();
}

class AnyPbs : public Submission {
 public:
  std::string_view marker() const override { return "#PBS"; }
  Argv submit_command(const std::string& script, const std::string& after) const override {
    Argv out{"qsub"};
    if (!after.empty()) out.insert(out.end(), {"-W", "depend=afterany:" + after});
    out.push_back(script);
    return out;
  }
  Argv cancel_command(const std::string& job_id) const override { return {"qdel", job_id}; }
  Argv stop_command(const std::string& job_id) const override { return {"qsig", "-s", "TERM", job_id}; }
  Argv state_command(const std::string& job_id) const override { return {"qstat", "-f", job_id}; }
  std::optional<bool> is_alive(const CommandOutput& state) const override {
    if (state.status.code() == 153 || state.status.code() == 35) return false;  // unknown, finished
    if (!state.status.success()) return std::nullopt;
    for (const char* word : {"job_state = R", "job_state = E", "job_state = S"})
      if (state.out.find(word) != std::string::npos) return true;
    return false;
  }
  std::optional<bool> is_pending_or_alive(const CommandOutput& state) const override {
    if (!state.status.success()) return is_alive(state);
    const std::size_t at = state.out.find("job_state = ");
    if (at == std::string::npos) return std::nullopt;
    const char letter = state.out.substr(at + 12, 1).front();
    return letter != 'F' && letter != 'C' && letter != 'X';
  }
  std::string_view own_job_variable() const override { return "PBS_JOBID"; }
  Result<std::string> job_id(std::string_view printed) const override {
    const std::string id = last_line_of_shape(printed, pbs_id);
    if (id.empty()) return fail(ErrorKind::unavailable, "qsub printed no job id: '{}'", trim(printed));
    return id;
  }
  std::vector<BlamedWord> blamed_words() const override {
    return {{"queue", "resources.queue"},
            {"walltime", "resources.walltime"},
            {"ngpus", "resources.gpus-per-node"},
            {"gpus", "resources.gpus-per-node"},
            {"account", "resources.account"},
            {"select", "resources.nodes"},
            {"ncpus", "resources.nodes"},
            {"node(s) specification", "resources.nodes"},
            {"-n value", "name"}};
  }
  // An inherited PBS_DPREFIX would make every directive a comment.
  Environment environment(Environment ours) const override {
    ours.unset("PBS_DPREFIX");
    return ours;
  }

 protected:
  Result<void> add_common(DirectiveList& out, const SubmissionRequest& request,
                          std::size_t longest_name) const {
    TRY(out.add_word("-N ", pbs_name(request.name, longest_name), "name"));
    if (request.output.find(':') != std::string::npos)  // HOST:PATH
      return fail(ErrorKind::input, "PBS cannot write into a folder with a colon: {}", request.output);
    TRY(out.add_word("-o ", request.output + "/", "the output folder"));
    out.add("-j oe");
    out.add("-S /bin/bash");
    if (request.walltime) out.add("-l walltime=" + clock_text(*request.walltime), "resources.walltime");
    TRY(out.add_word("-q ", request.queue, "resources.queue"));
    return out.add_word("-A ", request.account, "resources.account");
  }
};

// Nodes and the most CPUs of one, of `pbsnodes -a`: nothing where it tells no nodes.
struct PbsNodes {
  int count = 0;
  std::int64_t most_cpus = 0;
};
PbsNodes nodes_of(std::string_view text) {
  PbsNodes out;
  for (const std::string& line : split(text, '\n')) {
    const std::string_view words = trim(line);
    if (!words.empty() && words == std::string_view(line).substr(0, words.size())) ++out.count;
    constexpr std::string_view cpus = "resources_available.ncpus = ";
    if (!words.starts_with(cpus)) continue;
    if (const auto number = parse_integer(words.substr(cpus.size()), 0, 1 << 20))
      out.most_cpus = std::max(out.most_cpus, *number);
  }
  return out;
}

class PbsSubmission final : public AnyPbs {
 public:
  std::string_view name() const override { return "pbs"; }
  std::optional<std::string> array_list(std::string_view option) const override {
    return option_value(option, "-J");
  }
  std::string_view array_variable() const override { return "PBS_ARRAY_INDEX"; }
  Result<std::vector<Directive>> directives(const SubmissionRequest& request) const override {
    DirectiveList out(marker());
    TRY(add_common(out, request, 230));
    // A line of the node file for each rank, on nodes that are all different.
    std::string chunks = fmt::format("-l select={}:ncpus={}:mpiprocs={}", request.nodes,
                                     request.tasks_per_node * request.cpus_per_task, request.tasks_per_node);
    if (request.gpus_per_node > 0) chunks += fmt::format(":ngpus={}", request.gpus_per_node);
    out.add(chunks, "resources.nodes");
    out.add("-l place=scatter");
    return std::move(out).with_extra(request);
  }

  // In the comment that its scheduler leaves at its first look: "Can Never Run: Not enough total nodes
  // available". qstat breaks long lines and begins the rest with a tab.
  std::optional<std::string> why_never(const CommandOutput& state) const override {
    constexpr std::string_view key = "comment = ";
    const std::size_t at = state.out.find(key);
    if (!state.status.success() || at == std::string::npos) return std::nullopt;
    std::string out;
    for (std::size_t i = at + key.size(); i < state.out.size(); ++i) {
      const bool goes_on = state.out[i] == '\n' && i + 1 < state.out.size() && state.out[i + 1] == '\t';
      if (state.out[i] == '\n' && !goes_on) break;
      if (state.out[i] != '\n' && state.out[i] != '\t') out += state.out[i];
    }
    return out.starts_with("Can Never Run") ? out : std::string();
  }
  Seconds doubts_for() const override { return Seconds(3); }

  // qsub takes a job for 50 hosts of a cluster that has three, and never runs it.
  Result<void> check_possible(const SubmissionRequest& request, const Environment& environment,
                              const CommandRunner& commands) const override {
    const auto said =
        commands.run({.argv = {"pbsnodes", "-a"}, .environment = environment, .limit = Seconds(20)});
    const PbsNodes nodes = said && said->status.success() ? nodes_of(said->out) : PbsNodes{};
    const int cpus = request.tasks_per_node * request.cpus_per_task;
    std::string what;
    if (nodes.count > 0 && request.nodes > nodes.count)
      what = fmt::format("PBS has {} nodes and the job asks for {}", nodes.count, request.nodes);
    else if (nodes.most_cpus > 0 && cpus > nodes.most_cpus)
      what = fmt::format("no node of PBS has {} CPUs: {} are the most", cpus, nodes.most_cpus);
    if (what.empty()) return {};
    return fail(Error{.kind = ErrorKind::allocation,
                      .what = what + ": the job would wait for ever",
                      .where = {},
                      .hint = "pbsnodes -a shows what is there",
                      .also = {}});
  }
};

class TorqueSubmission final : public AnyPbs {
 public:
  std::string_view name() const override { return "torque"; }
  std::optional<std::string> array_list(std::string_view option) const override {
    return option_value(option, "-t");
  }
  std::string_view array_variable() const override { return "PBS_ARRAYID"; }
  Result<std::vector<Directive>> directives(const SubmissionRequest& request) const override {
    DirectiveList out(marker());
    TRY(add_common(out, request, 15));
    std::string nodes =
        fmt::format("-l nodes={}:ppn={}", request.nodes, request.tasks_per_node * request.cpus_per_task);
    if (request.gpus_per_node > 0) nodes += fmt::format(":gpus={}", request.gpus_per_node);
    out.add(nodes, "resources.nodes");
    return std::move(out).with_extra(request);
  }
};

}  // namespace

std::unique_ptr<Submission> make_pbs_submission() {
  return std::make_unique<PbsSubmission>();
}
std::unique_ptr<Submission> make_torque_submission() {
  return std::make_unique<TorqueSubmission>();
}

}  // namespace dlrun
