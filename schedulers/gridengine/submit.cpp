// Grid Engine: qsub -terse. How slots are spread over nodes is a site's parallel environment, and what GPUs
// are called a site's resource: neither is guessed, both come from resources.extra. Jobs have -notify:
// without it qdel is SIGKILL for everything at once, with it SIGUSR2 comes first, by the queue's `notify` (a
// minute).
#include <algorithm>
#include <cctype>

#include "schedulers/directive.hpp"
#include "schedulers/gridengine/gridengine.hpp"
#include "schedulers/gridengine/queue_place.hpp"

namespace dlrun {
namespace {

bool asks_for(const SubmissionRequest& request, std::string_view begin) {
  return std::any_of(request.extra.begin(), request.extra.end(),
                     [&](const std::string& line) { return trim(line).starts_with(begin); });
}

constexpr std::size_t kMaxName = 255;

const OptionTable& gridengine_options() {
  static const OptionTable table{.style = OptionTable::Style::exact,
                                 .options = {{"-N", {"-N"}},
                                             {"-wd", {"-wd", "-cwd"}},
                                             {"-o", {"-o"}},
                                             {"-j", {"-j"}},
                                             {"-S", {"-S"}},
                                             {"-notify", {"-notify"}},
                                             {"-l", {"-l"}},
                                             {"-q", {"-q"}},
                                             {"-P", {"-P"}},
                                             {"-M", {"-M"}},
                                             {"-m", {"-m"}},
                                             {"-pe", {"-pe"}}},
                                 .parts = resource_parts};
  return table;
}

// "123", or "123.1-10:1" for an array.
std::string gridengine_id(std::string_view line) {
  const std::string_view number = line.substr(0, line.find_first_not_of("0123456789"));
  const bool whole = number.size() == line.size() ||
                     (line[number.size()] == '.' &&
                      line.find_first_not_of("0123456789.-:", number.size()) == std::string_view::npos);
  return number.empty() || !whole ? std::string() : std::string(number);
}

class GridEngineSubmission final : public Submission {
 public:
  std::string_view name() const override { return "gridengine"; }
  std::string_view marker() const override { return "#$"; }

  Result<std::vector<Directive>> directives(const SubmissionRequest& request) const override {
    TRY(check(request));
    DirectiveList out(marker());
    TRY(out.add_word("-N ", scheduler_job_name(request.name, kMaxName, FirstCharacter::letter), "name"));
    TRY(out.add_word("-wd ", request.directory, "the working directory"));
    TRY(out.add_word("-o ", request.output, "the output folder"));
    out.add("-j y");
    out.add("-S /bin/bash");
    out.add("-notify");
    if (request.walltime) out.add(fmt::format("-l h_rt={}", request.walltime->count()), "resources.walltime");
    TRY(out.add_word("-q ", request.queue, "resources.queue"));
    TRY(out.add_word("-P ", request.account, "resources.account"));
    if (request.unlimited) out.add("-l h_rt=INFINITY", "resources.walltime");
    TRY(out.add_word("-M ", request.mail, "resources.mail"));
    constexpr MailLetter letters[] = {{"begin", 'b'}, {"end", 'e'}, {"fail", 'a'}};
    if (!request.mail.empty()) out.add("-m " + mail_letters(request.mail_events, letters), "resources.mail");
    return std::move(out).with_extra(request, gridengine_options());
  }
  std::vector<InexpressibleKey> inexpressible() const override {
    return {
        {"resources.chunks", "request equal nodes, with the maximum that one of them needs"},

        {"resources.memory", "qconf -sc lists the site's resources: resources.extra: [\"-l mem_free=64G\"]"},
        {"resources.gpu-type",
         "qconf -sc lists the site's resources: resources.extra: [\"-l gpu_type=a100\"]"},
        {"resources.constraint", "use resources.extra: [\"-l RESOURCE=VALUE\"] or [\"-q QUEUE@@HOSTGROUP\"]"},
        {"resources.exclusive", "if the site has it: resources.extra: [\"-l exclusive=true\"]"},
        {"resources.qos", "Grid Engine has projects: resources.account"}};
  }

  Argv submit_command(const std::string& script, const std::string& after) const override {
    Argv out{"qsub", "-terse"};
    if (!after.empty()) out.insert(out.end(), {"-hold_jid", after});
    out.push_back(script);
    return out;
  }
  Argv cancel_command(const std::string& job_id) const override { return {"qdel", job_id}; }
  // qalter would replace all that the job asked for by -l, so a job that waits stays as it is.
  Argv exclude_options(std::span<const HostName> nodes) const override {
    std::string list;
    for (const HostName& node : nodes) list += (list.empty() ? "" : "|") + node.get();
    return {"-l", "hostname=!(" + list + ")"};
  }
  bool names_nodes(std::string_view script) const override {
    for (const std::string& line : split(script, '\n'))
      if (line.starts_with(marker()) &&
          (line.find("hostname=") != std::string::npos || line.find("h=") != std::string::npos))
        return true;
    return false;
  }
  std::optional<std::string> array_list(std::string_view option) const override {
    return option_value(option, "-t");
  }
  std::string_view array_variable() const override { return "SGE_TASK_ID"; }
  Argv state_command(const std::string& job_id) const override { return {"qstat", "-j", job_id}; }
  std::optional<bool> is_alive(const CommandOutput& state) const override {
    if (state.status.success()) return true;
    return state.err.find("do not exist") != std::string::npos ? std::optional(false) : std::nullopt;
  }
  std::optional<bool> is_pending_or_alive(const CommandOutput& state) const override {
    return is_alive(state);  // qstat -j knows waiting jobs, and none that is over
  }
  Argv queue_command() const override { return gridengine_queue_command(); }
  std::optional<QueuePlace> queue_place(const CommandOutput& queue, std::string_view job_id) const override {
    return queue.status.success() ? gridengine_queue_place(queue.out, job_id) : std::nullopt;
  }
  std::string_view own_job_variable() const override { return "JOB_ID"; }

  Result<std::string> job_id(std::string_view printed) const override {
    const std::string id = last_line_of_shape(printed, gridengine_id);
    if (id.empty()) return fail(ErrorKind::unavailable, "qsub printed no job id: '{}'", trim(printed));
    return id;
  }
  // qsub -w v asks whether a job could run if the cluster were empty: queues that are full or disabled for a
  // while do not count.
  Result<void> check_possible(const SubmissionRequest& request, const Environment& environment,
                              const CommandRunner& commands) const override {
    const std::vector<Directive> lines = TRY(directives(request));
    Argv argv{"qsub", "-w", "v", "-b", "y"};
    for (const Directive& line : lines) {
      if (!line.key.starts_with("resources.")) continue;  // names and folders have no say
      if (line.text.find('"') != std::string::npos) return {};
      for (const std::string& word : split(line.text.substr(marker().size()), ' '))
        if (!word.empty()) argv.push_back(word);
    }
    if (!request.excluded.empty())
      for (const std::string& word : exclude_options(request.excluded)) argv.push_back(word);
    argv.emplace_back("true");
    const auto said =
        commands.run({.argv = argv, .environment = this->environment(environment), .limit = Seconds(20)});
    if (!said || said->status.success()) return {};
    const std::string_view text = trim(said->err);
    if (text.find("verification: no suitable queues") == text.npos) return {};  // qsub will say it itself
    return fail(Error{.kind = ErrorKind::allocation,
                      .what = "no queue of Grid Engine can run this job: it would wait forever",
                      .where = {},
                      .hint = "request what the cluster has: qconf -spl and qconf -sql list it",
                      .also = split(text, '\n')});
  }
  std::vector<RefusalKeyword> refusal_keywords() const override {
    return {{"queue", "resources.queue"},
            {"project", "resources.account"},
            {"h_rt", "resources.walltime"},
            {"parallel environment", "resources.extra"}};
  }

 private:
  static Result<void> check(const SubmissionRequest& request) {
    const int each = request.tasks_per_node * request.cpus_per_task;
    const int slots = request.nodes * each;
    const std::string range =
        request.min_nodes ? fmt::format("{}-{}", *request.min_nodes * each, slots) : std::to_string(slots);
    if (slots > 1 && !asks_for(request, "-pe"))
      return fail(Error{
          .kind = ErrorKind::input,
          .what = fmt::format(
              "Grid Engine needs a parallel environment for {} slots, and resources.extra names none", slots),
          .where = {},
          .hint = fmt::format("qconf -spl lists the site's; add \"-pe NAME {}\"", range),
          .also = {}});
    if (request.gpus_per_node > 0 && !asks_for(request, "-l"))
      return fail(
          Error{.kind = ErrorKind::input,
                .what = "Grid Engine has no common name for GPUs, and resources.extra names none",
                .where = {},
                .hint = fmt::format("qconf -sc lists the site's resources; add for example \"-l gpu={}\"",
                                    request.gpus_per_node),
                .also = {}});
    // In these paths $ starts one of its own variables.
    if (request.output.find('$') != std::string::npos)
      return fail(ErrorKind::input, "Grid Engine cannot write into a folder with a '$': {}", request.output);
    return {};
  }
};

}  // namespace

std::unique_ptr<Submission> make_gridengine_submission() {
  return std::make_unique<GridEngineSubmission>();
}

}  // namespace dlrun
