// LSF: bsub, which reads the script from its standard input and takes its limits in minutes.
#include <algorithm>
#include <cctype>

#include "schedulers/directive.hpp"
#include "schedulers/lsf/lsf.hpp"
#include "schedulers/lsf/queue_place.hpp"

namespace dlrun {
namespace {

// "Job <607844> is submitted to queue <medium>.", "... to default queue <normal>."
std::string lsf_id(std::string_view line) {
  constexpr std::string_view begin = "Job <";
  const std::size_t end = line.find("> is submitted to ");
  if (!line.starts_with(begin) || end == std::string_view::npos) return {};
  const std::string_view id = line.substr(begin.size(), end - begin.size());
  const bool digits =
      !id.empty() && std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits ? std::string(id) : std::string();
}

std::string hours_and_minutes(std::chrono::seconds time) {
  const auto minutes = (time.count() + 59) / 60;
  return fmt::format("{}:{:02}", minutes / 60, minutes % 60);
}

// "-R span[ptile=4]" and "-R rusage[mem=1]" are two things; a select adds to another one.
std::vector<std::string> lsf_parts(std::string_view subject, std::string_view value) {
  if (subject != "-R") return {std::string(subject)};
  std::vector<std::string> out;
  for (const std::string_view section : {"span", "rusage"})
    if (value.find(std::string(section) + "[") != value.npos) out.push_back(fmt::format("-R {}", section));
  return out;
}

const OptionTable& lsf_options() {
  static const OptionTable table{.style = OptionTable::Style::exact,
                                 .options = {{"-J", {"-J"}},
                                             {"-cwd", {"-cwd"}},
                                             {"-o", {"-o", "-oo"}},
                                             {"-n", {"-n"}},
                                             {"-R", {"-R"}},
                                             {"-gpu", {"-gpu"}},
                                             {"-W", {"-W"}},
                                             {"-q", {"-q"}},
                                             {"-P", {"-P"}},
                                             {"-x", {"-x"}},
                                             {"-u", {"-u"}},
                                             {"-B", {"-B"}},
                                             {"-N", {"-N", "-Ne"}}},
                                 .parts = lsf_parts};
  return table;
}

bool has_event(const SubmissionRequest& request, std::string_view event) {
  return std::find(request.mail_events.begin(), request.mail_events.end(), event) !=
         request.mail_events.end();
}

class LsfSubmission final : public Submission {
 public:
  std::string_view name() const override { return "lsf"; }
  std::string_view marker() const override { return "#BSUB"; }

  Result<std::vector<Directive>> directives(const SubmissionRequest& request) const override {
    if (request.output.find('%') != std::string::npos)  // %J and its like
      return fail(ErrorKind::input, "LSF cannot write into a folder with a '%': {}", request.output);
    DirectiveList out(marker());
    const int a_node = request.tasks_per_node * request.cpus_per_task;
    if (request.min_nodes && a_node > 1)  // span[ptile] bounds what a node gets from above alone
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format(
                            "resources.nodes is {}, and LSF grants ranges in slots: the last node could have "
                            "fewer than the {} that each needs",
                            node_count(request), a_node),
                        .where = {},
                        .hint = "request one number of nodes; a later job may have another: --nodes N",
                        .also = {}});
    TRY(out.add_word("-J ", request.name, "name"));
    TRY(out.add_word("-cwd ", request.directory, "the working directory"));
    TRY(out.add_word("-o ", request.output + "/%J.out", "the output folder"));
    const std::string fewest = request.min_nodes ? fmt::format("{},", *request.min_nodes * a_node) : "";
    out.add(fmt::format("-n {}{}", fewest, request.nodes * a_node), "resources.nodes");
    out.add(fmt::format("-R \"span[ptile={}]\"", a_node), "resources.tasks-per-node");
    if (request.gpus_per_node > 0) TRY(add_gpus(out, request));
    if (request.memory)
      out.add(fmt::format("-R \"rusage[mem={}MB/host]\"", mebibytes(*request.memory)), "resources.memory");
    if (!request.constraint.empty()) TRY(add_constraint(out, request));
    if (request.exclusive) out.add("-x", "resources.exclusive");
    if (request.walltime) out.add("-W " + hours_and_minutes(*request.walltime), "resources.walltime");
    TRY(out.add_word("-q ", request.queue, "resources.queue"));
    TRY(out.add_word("-P ", request.account, "resources.account"));
    TRY(out.add_word("-u ", request.mail, "resources.mail"));
    if (has_event(request, "begin")) out.add("-B", "resources.mail");
    if (has_event(request, "end"))
      out.add("-N", "resources.mail");
    else if (has_event(request, "fail"))
      out.add("-Ne", "resources.mail");
    return std::move(out).with_extra(request, lsf_options());
  }
  std::vector<InexpressibleKey> inexpressible() const override {
    return {{"resources.chunks", "request equal nodes, with the maximum that one of them needs"},
            {"resources.walltime", "remove it: the limit of the queue applies then"},
            {"resources.qos", "LSF has service classes: resources.extra: [\"-sla NAME\"]"}};
  }

  Argv submit_command(const std::string& script, const std::string& after) const override {
    Argv out{"sh", "-c", "script=$1; shift; exec bsub \"$@\" <\"$script\"", "bsub", script};
    if (!after.empty()) out.insert(out.end(), {"-w", fmt::format("ended({})", after)});
    return out;
  }
  Argv cancel_command(const std::string& job_id) const override { return {"bkill", job_id}; }
  std::optional<std::string> array_list(std::string_view option) const override {  // -J "name[1-9]%2"
    const std::string name = option_value(option, "-J").value_or("");
    const std::size_t open = name.find('['), close = name.find(']');
    if (open == name.npos || close == name.npos || close < open) return std::nullopt;
    return name.substr(open + 1, close - open - 1) + name.substr(close + 1);
  }
  std::string_view array_variable() const override { return "LSB_JOBINDEX"; }
  Argv state_command(const std::string& job_id) const override {
    return {"bjobs", "-noheader", "-o", "stat", job_id};
  }
  std::optional<bool> is_alive(const CommandOutput& state) const override {
    if (is_unknown(state)) return false;
    if (!state.status.success()) return std::nullopt;
    for (const char* word : {"RUN", "USUSP", "SSUSP"})
      if (state.out.find(word) != std::string::npos) return true;
    return false;
  }
  // PSUSP: suspended before it has begun.
  std::optional<bool> is_pending_or_alive(const CommandOutput& state) const override {
    if (is_unknown(state)) return false;
    if (!state.status.success() || trim(state.out).empty()) return std::nullopt;
    for (const char* word : {"PEND", "PSUSP", "PROV", "WAIT"})
      if (state.out.find(word) != std::string::npos) return true;
    return is_alive(state);
  }
  std::string why_held(const CommandOutput& state) const override {
    return state.out.find("PSUSP") == std::string::npos ? "" : "PSUSP";
  }
  Argv queue_command() const override { return lsf_queue_command(); }
  std::optional<QueuePlace> queue_place(const CommandOutput& queue, std::string_view job_id) const override {
    if (!queue.status.success()) return std::nullopt;
    return lsf_queue_place(queue.out, job_id, SystemClock().now());
  }
  std::string_view own_job_variable() const override { return "LSB_JOBID"; }

  Result<std::string> job_id(std::string_view printed) const override {
    const std::string id = last_line_of_shape(printed, lsf_id);
    if (id.empty()) return fail(ErrorKind::unavailable, "bsub printed no job id: '{}'", trim(printed));
    return id;
  }

 private:
  static bool is_unknown(const CommandOutput& state) {
    constexpr std::string_view words = "is not found";
    return state.out.find(words) != std::string::npos || state.err.find(words) != std::string::npos;
  }
  // Both stand in quotes of their own, so that a value may have no blank that ends them.
  static Result<void> add_gpus(DirectiveList& out, const SubmissionRequest& request) {
    std::string text = fmt::format("num={}", request.gpus_per_node);
    if (!request.gpu_type.empty())
      text += ":gmodel=" + TRY(directive_word(request.gpu_type, "resources.gpu-type"));
    if (text.find('"') != text.npos)
      return fail(ErrorKind::input, "resources.gpu-type: '{}' is not a GPU model of LSF", request.gpu_type);
    out.add(fmt::format("-gpu \"{}\"", text), "resources.gpus-per-node");
    return {};
  }
  static Result<void> add_constraint(DirectiveList& out, const SubmissionRequest& request) {
    return out.add_word("-R ", fmt::format("select[{}]", request.constraint), "resources.constraint");
  }

 public:
  std::vector<RefusalKeyword> refusal_keywords() const override {
    return {{"queue", "resources.queue"},        {"runlimit", "resources.walltime"},
            {"run limit", "resources.walltime"}, {"project", "resources.account"},
            {"gpu", "resources.gpus-per-node"},  {"number of processors", "resources.nodes"},
            {"too many", "resources.nodes"}};
  }
};

}  // namespace

std::unique_ptr<Submission> make_lsf_submission() {
  return std::make_unique<LsfSubmission>();
}

}  // namespace dlrun
