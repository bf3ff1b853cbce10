// LSF: bsub, which reads the script from its standard input and takes its limits in minutes.
#include <algorithm>
#include <cctype>

#include "schedulers/directive.hpp"

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

class LsfSubmission final : public Submission {
 public:
  std::string_view name() const override { return "lsf"; }
  std::string_view marker() const override { return "#BSUB"; }

  Result<std::vector<Directive>> directives(const SubmissionRequest& request) const override {
    if (request.output.find('%') != std::string::npos)  // %J and its like
      return fail(ErrorKind::input, "LSF cannot write into a folder with a '%': {}", request.output);
    DirectiveList out(marker());
    const int a_node = request.tasks_per_node * request.cpus_per_task;
    TRY(out.add_word("-J ", request.name, "name"));
    TRY(out.add_word("-cwd ", request.directory, "the working directory"));
    TRY(out.add_word("-o ", request.output + "/%J.out", "the output folder"));
    out.add(fmt::format("-n {}", request.nodes * a_node), "resources.nodes");
    out.add(fmt::format("-R \"span[ptile={}]\"", a_node), "resources.tasks-per-node");
    if (request.gpus_per_node > 0)
      out.add(fmt::format("-gpu \"num={}\"", request.gpus_per_node), "resources.gpus-per-node");
    if (request.walltime) out.add("-W " + hours_and_minutes(*request.walltime), "resources.walltime");
    TRY(out.add_word("-q ", request.queue, "resources.queue"));
    TRY(out.add_word("-P ", request.account, "resources.account"));
    return std::move(out).with_extra(request);
  }

  Argv submit_command(const std::string& script, const std::string& after) const override {
    Argv out{"sh", "-c", "script=$1; shift; exec bsub \"$@\" <\"$script\"", "bsub", script};
    if (!after.empty()) out.insert(out.end(), {"-w", fmt::format("ended({})", after)});
    return out;
  }
  Argv cancel_command(const std::string& job_id) const override { return {"bkill", job_id}; }
  Argv stop_command(const std::string& job_id) const override { return {"bkill", "-s", "TERM", job_id}; }
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
    if (state.out.find("is not found") != std::string::npos ||
        state.err.find("is not found") != std::string::npos)
      return false;
    if (!state.status.success()) return std::nullopt;
    return state.out.find("RUN") != std::string::npos || state.out.find("SUSP") != std::string::npos;
  }
  std::string_view own_job_variable() const override { return "LSB_JOBID"; }

  Result<std::string> job_id(std::string_view printed) const override {
    const std::string id = last_line_of_shape(printed, lsf_id);
    if (id.empty()) return fail(ErrorKind::unavailable, "bsub printed no job id: '{}'", trim(printed));
    return id;
  }
  std::vector<BlamedWord> blamed_words() const override {
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
