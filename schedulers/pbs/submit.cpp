// OpenPBS and PBS Pro (qsub -l select) and Torque (qsub -l nodes). Both read a comma or a quote in `qsub -v`
// as their own, so nothing is passed that way: what a job needs stands in its script. A script's directives
// win over nothing and are each written once: of two `-l walltime` lines PBS takes the first.
#include <algorithm>
#include <cctype>

#include "schedulers/directive.hpp"
#include "schedulers/pbs/pbs.hpp"
#include "schedulers/pbs/queue_place.hpp"
#include "schedulers/torque/torque.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

constexpr std::size_t kPbsName = 230, kTorqueName = 15;

// Of the chunks that nodes are asked for by, qsub takes one form: select with place, or nodes.
std::vector<std::string> pbs_parts(std::string_view subject, std::string_view value) {
  std::vector<std::string> out = resource_parts(subject, value);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] == "-l nodes") out.insert(out.end(), {"-l select", "-l place"}), i = out.size();
  return out;
}

const OptionTable& pbs_options() {
  static const OptionTable table{.options = {{"-N", {"-N"}},
                                             {"-o", {"-o"}},
                                             {"-j", {"-j"}},
                                             {"-S", {"-S"}},
                                             {"-l", {"-l"}},
                                             {"-q", {"-q"}},
                                             {"-A", {"-A"}},
                                             {"-M", {"-M"}},
                                             {"-m", {"-m"}},
                                             {"-n", {"-n"}}},
                                 .parts = pbs_parts};
  return table;
}

const OptionTable& torque_options() {
  static const OptionTable table{.options = pbs_options().options, .parts = resource_parts};
  return table;
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

// qstat breaks long lines and begins the rest with a tab.
std::optional<std::string> comment_of(std::string_view text) {
  constexpr std::string_view key = "comment = ";
  const std::size_t at = text.find(key);
  if (at == text.npos) return std::nullopt;
  std::string out;
  for (std::size_t i = at + key.size(); i < text.size(); ++i) {
    const bool goes_on = text[i] == '\n' && i + 1 < text.size() && text[i + 1] == '\t';
    if (text[i] == '\n' && !goes_on) break;
    if (text[i] != '\n' && text[i] != '\t') out += text[i];
  }
  return out;
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
  // A job that waits for another is in state H as well, with the system's hold alone.
  std::string why_held(const CommandOutput& state) const override {
    const std::size_t types = state.out.find("Hold_Types = ");
    if (!state.status.success() || state.out.find("job_state = H") == std::string::npos) return {};
    const std::string letters = types == std::string::npos
                                    ? ""
                                    : state.out.substr(types + 13, state.out.find('\n', types) - types - 13);
    const std::string comment = comment_of(state.out).value_or("");
    const bool too_many = comment.find("too many failed attempts") != std::string::npos;
    if (letters.find_first_of("uo") == std::string::npos && !too_many) return {};
    return comment.empty() ? "Hold_Types = " + letters : comment;
  }
  Argv queue_command() const override { return pbs_queue_command(); }
  std::optional<QueuePlace> queue_place(const CommandOutput& queue, std::string_view job_id) const override {
    return queue.status.success() ? pbs_queue_place(queue.out, job_id) : std::nullopt;
  }
  std::string_view own_job_variable() const override { return "PBS_JOBID"; }
  // Also "123[4].server", an array's element.
  bool is_job_id(std::string_view text) const override {
    const std::size_t open = text.find('['), close = text.find(']');
    if (open == text.npos) return !pbs_id(text).empty();
    return close != text.npos && close > open &&
           text.substr(open + 1, close - open - 1).find_first_not_of("0123456789") == text.npos &&
           !pbs_id(std::string(text.substr(0, open)) + std::string(text.substr(close + 1))).empty();
  }
  Result<std::string> job_id(std::string_view printed) const override {
    const std::string id = last_line_of_shape(printed, pbs_id);
    if (id.empty()) return fail(ErrorKind::unavailable, "qsub printed no job id: '{}'", trim(printed));
    return id;
  }
  std::vector<RefusalKeyword> refusal_keywords() const override {
    return {{"queue", "resources.queue"},
            {"walltime", "resources.walltime"},
            {"ngpus", "resources.gpus-per-node"},
            {"memory", "resources.memory"},
            {"gpus", "resources.gpus-per-node"},
            {"account", "resources.account"},
            {"select", "resources.nodes"},
            {"ncpus", "resources.nodes"},
            {"node(s) specification", "resources.nodes"},
            {"-n value", "name"}};
  }
  // An inherited PBS_DPREFIX would make every directive a comment.

 protected:
  Environment own_environment(Environment ours) const override {
    ours.unset("PBS_DPREFIX");
    return ours;
  }

  Result<void> add_common(DirectiveList& out, const SubmissionRequest& request,
                          std::size_t longest_name) const {
    TRY(out.add_word("-N ", scheduler_job_name(request.name, longest_name, FirstCharacter::letter), "name"));
    TRY(check_output(request.output));
    if (request.output.find(':') != std::string::npos)  // HOST:PATH
      return fail(ErrorKind::input, "PBS cannot write into a folder with a colon: {}", request.output);
    TRY(out.add_word("-o ", request.output + "/", "the output folder"));
    out.add("-j oe");
    out.add("-S /bin/bash");
    if (request.walltime) out.add("-l walltime=" + clock_text(*request.walltime), "resources.walltime");
    TRY(out.add_word("-q ", request.queue, "resources.queue"));
    TRY(out.add_word("-M ", request.mail, "resources.mail"));
    constexpr MailLetter letters[] = {{"fail", 'a'}, {"begin", 'b'}, {"end", 'e'}};
    if (!request.mail.empty()) out.add("-m " + mail_letters(request.mail_events, letters), "resources.mail");
    return out.add_word("-A ", request.account, "resources.account");
  }

 private:
  static Result<void> check_output(std::string_view folder) {
    if (std::all_of(folder.begin(), folder.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
      return {};
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("qsub accepts only ASCII in the output folder: {}", folder),
                      .where = {},
                      .hint = "submit from a folder with another name, or from a symbolic link to this one: "
                              "ln -s \"$PWD\" ~/job && cd ~/job"});
  }
};

// The number of nodes and the maximum CPUs per node, from `pbsnodes -a`; 0 if it lists no nodes.
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
    TRY(add_common(out, request, kPbsName));
    // A line of the node file for each rank, on nodes that are all different.
    std::string chunks;
    for (const RequestedNodes& one : requested_nodes(request)) {
      chunks += fmt::format("{}{}:ncpus={}:mpiprocs={}", chunks.empty() ? "-l select=" : "+", one.nodes,
                            one.cpus, request.tasks_per_node);
      if (one.gpus > 0) chunks += fmt::format(":ngpus={}", one.gpus);
      if (one.memory) chunks += fmt::format(":mem={}mb", mebibytes(*one.memory));
    }
    out.add(chunks, "resources.nodes");
    out.add(request.exclusive ? "-l place=scatter:excl" : "-l place=scatter",
            request.exclusive ? "resources.exclusive" : "");
    return std::move(out).with_extra(request, pbs_options());
  }
  std::vector<InexpressibleKey> inexpressible() const override {
    constexpr std::string_view no_range =
        "request one number of nodes; a later job may have another: --nodes N";
    constexpr std::string_view own =
        "write a select of your own: resources.extra: "
        "[\"-l select=2:ncpus=16:mpiprocs=4:SITES_RESOURCE=VALUE\"]";
    return {{"resources.walltime", "remove it: the limit of the queue applies then"},
            {"resources.nodes", no_range},
            {"resources.gpu-type", own},
            {"resources.constraint", own},
            {"resources.qos", "PBS has queues: resources.queue"}};
  }

  // Its scheduler leaves it at its first look: "Can Never Run: Not enough total nodes available".
  std::optional<std::string> why_never(const CommandOutput& state) const override {
    const auto comment = comment_of(state.out);
    if (!state.status.success() || !comment) return std::nullopt;
    return comment->starts_with("Can Never Run") ? *comment : std::string();
  }
  Seconds doubts_for() const override { return Seconds(3); }

  // qsub takes a job for 50 hosts of a cluster that has three, and never runs it.
  Result<void> check_possible(const SubmissionRequest& request, const Environment& environment,
                              const CommandRunner& commands) const override {
    const auto said = commands.run(
        {.argv = {"pbsnodes", "-a"}, .environment = this->environment(environment), .limit = Seconds(20)});
    const PbsNodes nodes = said && said->status.success() ? nodes_of(said->out) : PbsNodes{};
    const int cpus = request.tasks_per_node * request.cpus_per_task;
    std::string what;
    if (nodes.count > 0 && request.nodes > nodes.count)
      what = fmt::format("PBS has {} nodes and the job requests {}", nodes.count, request.nodes);
    else if (nodes.most_cpus > 0 && cpus > nodes.most_cpus)
      what = fmt::format("no node of PBS has {} CPUs; the maximum is {}", cpus, nodes.most_cpus);
    if (what.empty()) return {};
    return fail(Error{.kind = ErrorKind::allocation,
                      .what = what + ": the job would wait forever",
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
    TRY(add_common(out, request, kTorqueName));
    std::string nodes;
    std::uint64_t memory = 0;  // Torque's is the whole job's
    for (const RequestedNodes& one : requested_nodes(request)) {
      nodes += fmt::format("{}{}:ppn={}", nodes.empty() ? "-l nodes=" : "+", one.nodes, one.cpus);
      if (one.gpus > 0) nodes += fmt::format(":gpus={}", one.gpus);
      if (!request.constraint.empty())
        nodes += ":" + TRY(directive_word(request.constraint, "resources.constraint"));
      memory += one.memory.value_or(0) * static_cast<unsigned>(one.nodes);
    }
    out.add(nodes, "resources.nodes");
    if (memory > 0) out.add(fmt::format("-l mem={}mb", mebibytes(memory)), "resources.memory");
    if (request.exclusive) out.add("-n", "resources.exclusive");
    TRY(out.add_word("-l qos=", request.qos, "resources.qos"));
    return std::move(out).with_extra(request, torque_options());
  }
  std::vector<InexpressibleKey> inexpressible() const override {
    return {{"resources.walltime", "remove it: the limit of the queue applies then"},
            {"resources.nodes", "request one number of nodes; a later job may have another: --nodes N"},
            {"resources.gpu-type", "name a property of the nodes that have them: resources.constraint"}};
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
