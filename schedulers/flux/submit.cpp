// Flux: flux batch. A slot is a node's share, so that what a job gets on each node does not depend on how its
// tasks divide it.
#include <algorithm>
#include <cctype>

#include "schedulers/directive.hpp"
#include "schedulers/flux/flux.hpp"
#include "schedulers/flux/queue_place.hpp"

namespace dlrun {
namespace {

// "ƒ2ix9Wv", or "f2ix9Wv" where the terminal has no UTF-8.
std::string flux_id(std::string_view line) {
  std::string_view rest = line;
  if (rest.starts_with("ƒ"))
    rest.remove_prefix(std::string_view("ƒ").size());
  else if (rest.starts_with('f'))
    rest.remove_prefix(1);
  else
    return {};
  const bool letters =
      !rest.empty() && rest.size() < 16 &&
      std::all_of(rest.begin(), rest.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  return letters ? std::string(line) : std::string();
}

const OptionTable& flux_options() {
  static const OptionTable table{.options = {{"job-name", {"--job-name"}},
                                             {"cwd", {"--cwd"}},
                                             {"output", {"--output"}},
                                             {"nodes", {"-N", "--nodes"}},
                                             {"nslots", {"-n", "--nslots"}},
                                             {"cores-per-slot", {"-c", "--cores-per-slot"}},
                                             {"gpus-per-slot", {"-g", "--gpus-per-slot"}},
                                             {"time-limit", {"-t", "--time-limit"}},
                                             {"queue", {"-q", "--queue"}},
                                             {"bank", {"-B", "--bank"}},
                                             {"exclusive", {"-x", "--exclusive"}},
                                             {"requires", {"--requires"}}}};
  return table;
}

class FluxSubmission final : public Submission {
 public:
  std::string_view name() const override { return "flux"; }
  std::string_view marker() const override { return "#flux:"; }

  Result<std::vector<Directive>> directives(const SubmissionRequest& request) const override {
    DirectiveList out(marker());
    TRY(out.add_word("--job-name=", request.name, "name"));
    TRY(out.add_word("--cwd=", request.directory, "the working directory"));
    if (request.output.find("{{") != std::string::npos)
      return fail(ErrorKind::input, "Flux cannot write into a folder with '{{{{': {}", request.output);
    TRY(out.add_word("--output=", request.output + "/{{id}}.out", "the output folder"));
    out.add(fmt::format("--nodes={}", request.nodes), "resources.nodes");
    out.add(fmt::format("--nslots={}", request.nodes), "resources.nodes");
    out.add(fmt::format("--cores-per-slot={}", request.tasks_per_node * request.cpus_per_task),
            "resources.tasks-per-node");
    if (request.gpus_per_node > 0)
      out.add(fmt::format("--gpus-per-slot={}", request.gpus_per_node), "resources.gpus-per-node");
    if (request.walltime)
      out.add(fmt::format("--time-limit={}s", request.walltime->count()), "resources.walltime");
    if (request.unlimited) out.add("--time-limit=0", "resources.walltime");
    TRY(out.add_word("--queue=", request.queue, "resources.queue"));
    TRY(out.add_word("--bank=", request.account, "resources.account"));
    TRY(out.add_word("--requires=", request.constraint, "resources.constraint"));
    if (request.exclusive) out.add("--exclusive", "resources.exclusive");
    return std::move(out).with_extra(request, flux_options());
  }
  std::vector<InexpressibleKey> inexpressible() const override {
    return {{"resources.chunks", "request equal nodes, with the maximum that one of them needs"},

            {"resources.nodes", "request one number of nodes; a later job may have another: --nodes N"},
            {"resources.memory", "Flux allocates cores: request more of them, or set exclusive: true"},
            {"resources.gpu-type", "name a property of the nodes that have them: resources.constraint"},
            {"resources.qos", "Flux has queues and banks: resources.queue, resources.account"},
            {"resources.mail", "Flux does not send mail"}};
  }

  Argv submit_command(const std::string& script, const std::string& after) const override {
    Argv out{"flux", "batch"};
    if (!after.empty()) out.push_back("--dependency=afterany:" + after);
    out.push_back(script);
    return out;
  }
  Argv cancel_command(const std::string& job_id) const override { return {"flux", "cancel", job_id}; }
  std::optional<std::string> array_list(std::string_view option) const override {
    const auto copies = option_value(option, "--cc");
    return copies ? copies : option_value(option, "--bcc");
  }
  std::string_view array_variable() const override { return "FLUX_JOB_CC"; }
  Argv state_command(const std::string& job_id) const override {
    return {"flux", "jobs", "-n", "-o", "{state}", job_id};
  }
  std::optional<bool> is_alive(const CommandOutput& state) const override {
    if (!state.status.success()) return std::nullopt;
    return state.out.find("RUN") != std::string::npos || state.out.find("CLEANUP") != std::string::npos;
  }
  std::optional<bool> is_pending_or_alive(const CommandOutput& state) const override {
    if (!state.status.success() || trim(state.out).empty()) return std::nullopt;
    return state.out.find("INACTIVE") == std::string::npos;
  }
  Argv queue_command() const override { return flux_queue_command(); }
  std::optional<QueuePlace> queue_place(const CommandOutput& queue, std::string_view job_id) const override {
    return queue.status.success() ? flux_queue_place(queue.out, job_id) : std::nullopt;
  }
  std::string_view own_job_variable() const override { return "FLUX_JOB_ID"; }
  bool is_job_id(std::string_view text) const override {
    return !flux_id(text).empty() || Submission::is_job_id(text);
  }

  Result<std::string> job_id(std::string_view printed) const override {
    const std::string id = last_line_of_shape(printed, flux_id);
    if (id.empty()) return fail(ErrorKind::unavailable, "flux batch printed no job id: '{}'", trim(printed));
    return id;
  }
  std::vector<RefusalKeyword> refusal_keywords() const override {
    return {{"queue", "resources.queue"},
            {"bank", "resources.account"},
            {"duration", "resources.walltime"},
            {"unsatisfiable", "resources.nodes"}};
  }
};

}  // namespace

std::unique_ptr<Submission> make_flux_submission() {
  return std::make_unique<FluxSubmission>();
}

}  // namespace dlrun
