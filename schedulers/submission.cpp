// The table of submissions, the choice among them, and the one way in which all of them hand a job in.
#include "schedulers/submission.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/process/child.hpp"

namespace dlrun {
namespace {

using Make = std::unique_ptr<Submission> (*)();
struct Entry {
  std::string_view name, program;
  Make make;
};
constexpr std::array<Entry, 6> kEntries{{{"slurm", "sbatch", make_slurm_submission},
                                         {"pbs", "qsub", make_pbs_submission},
                                         {"torque", "qsub", make_torque_submission},
                                         {"gridengine", "qsub", make_gridengine_submission},
                                         {"lsf", "bsub", make_lsf_submission},
                                         {"flux", "flux", make_flux_submission}}};

// What a scheduler's jobs find in their environment, by the beginnings of names; what tells where its servers
// are is no job's.
struct JobVariables {
  std::array<std::string_view, 2> schedulers;
  std::array<std::string_view, 6> prefixes;
  std::array<std::string_view, 6> kept = {};
};
constexpr std::array<JobVariables, 7> kJobVariables{
    {{{"slurm"}, {"SLURM_", "SLURMD_", "SBATCH_", "SRUN_"}, {"SLURM_CONF"}},
     {{"pbs", "torque"},
      {"PBS_"},
      {"PBS_CONF_FILE", "PBS_EXEC", "PBS_HOME", "PBS_SERVER", "PBS_DEFAULT", "PBS_PRIMARY"}},
     {{"gridengine"}, {"PE_HOSTFILE", "SGE_TASK_", "SGE_JOB_", "SGE_O_", "NSLOTS", "NHOSTS"}},
     {{"lsf"}, {"LSB_", "LS_JOBPID", "LS_SUBCWD"}},
     {{"flux"}, {"FLUX_"}},
     {{"oar"}, {"OAR_"}},
     {{"cobalt"}, {"COBALT_"}}}};

void drop(const JobVariables& variables, Environment& environment) {
  std::map<std::string, std::string> kept;
  for (const std::string_view name : variables.kept)
    if (const auto value = environment.find(name); value && !name.empty()) kept[std::string(name)] = *value;
  for (const std::string_view prefix : variables.prefixes)
    if (!prefix.empty()) environment.unset_prefix(prefix);
  environment.merge(kept);
}

constexpr Seconds kSubmitLimit{
    60};  // a controller that is busy answers late, and a job handed in twice is worse

std::string lower_answer(const CommandRunner& commands, const Environment& environment, const Argv& argv) {
  const auto output = commands.run({.argv = argv, .environment = environment, .limit = Seconds(20)});
  return output ? lower(output->out + output->err) : std::string();
}

// Four schedulers have a qsub, and Slurm has one that is made of sbatch.
std::string_view owner_of_qsub(const Environment& environment, const CommandRunner& commands) {
  const std::string version = lower_answer(commands, environment, {"qsub", "--version"});
  if (version.find("pbs_version") != version.npos) return "pbs";
  if (version.find("commit:") != version.npos || version.starts_with("version:")) return "torque";
  const std::string help = lower_answer(commands, environment, {"qsub", "-help"});
  if (help.starts_with("ge ") || help.starts_with("sge ") || help.starts_with("uge ") ||
      help.find("-pe pe-name") != help.npos)
    return "gridengine";
  return "";
}

std::vector<const Entry*> found_here(const Environment& environment, const CommandRunner& commands) {
  std::vector<const Entry*> out;
  const bool qsub = find_program("qsub", environment, "").has_value();
  const std::string_view owner = qsub ? owner_of_qsub(environment, commands) : std::string_view();
  for (const Entry& entry : kEntries)
    if (entry.program == "qsub" ? entry.name == owner
                                : find_program(std::string(entry.program), environment, "").has_value())
      out.push_back(&entry);
  return out;
}

std::vector<std::string> known_names() {
  std::vector<std::string> out;
  for (const Entry& entry : kEntries) out.emplace_back(entry.name);
  return out;
}

tl::unexpected<Error> no_choice(const std::vector<const Entry*>& found) {
  std::vector<std::string> names;
  for (const Entry* entry : found) names.push_back(fmt::format("{} ({})", entry->program, entry->name));
  return fail(
      Error{.kind = found.empty() ? ErrorKind::unavailable : ErrorKind::usage,
            .what = found.empty() ? "no scheduler's submit command is on PATH (sbatch, qsub, bsub, flux)"
                                  : "submit commands of several schedulers are on PATH: " + join(names, ", "),
            .where = {},
            .hint = found.empty() ? "run it on a login node, or see the script: --scheduler NAME --dry-run"
                                  : fmt::format("choose one: --scheduler {}", found.front()->name),
            .also = {}});
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

// Whether `word` stands in `text` and does not go on to the left or the right.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_character(text[at - 1])) &&
        (end == text.size() || !is_word_character(text[end])))
      return true;
  }
  return false;
}

// What stands between double quotes: the scheduler repeats what it did not like.
std::vector<std::string> quoted_words(std::string_view text) {
  const std::vector<std::string> parts = split(text, '"');
  std::vector<std::string> out;
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2)
    if (!parts[i].empty()) out.push_back(parts[i]);
  return out;
}

}  // namespace

Result<std::unique_ptr<Submission>> find_submission(std::string_view wanted, const Environment& environment,
                                                    const CommandRunner& commands) {
  for (const Entry& entry : kEntries)
    if (wanted == entry.name) return entry.make();
  if (wanted != "auto")
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("jobs cannot be submitted to '{}'", wanted),
                      .where = {},
                      .hint = did_you_mean(wanted, known_names()),
                      .also = {}});
  const std::vector<const Entry*> found = found_here(environment, commands);
  if (found.size() != 1) return no_choice(found);
  return found.front()->make();
}

Environment Submission::environment(Environment ours) const {
  for (const JobVariables& variables : kJobVariables)
    if (std::find(variables.schedulers.begin(), variables.schedulers.end(), name()) ==
        variables.schedulers.end())
      drop(variables, ours);
  return own_environment(std::move(ours));
}

bool Submission::is_job_id(std::string_view text) const {
  return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == text.npos;
}

std::vector<RequestedNodes> requested_nodes(const SubmissionRequest& request) {
  if (!request.chunks.empty()) return request.chunks;
  return {{.nodes = request.nodes,
           .cpus = request.tasks_per_node * request.cpus_per_task,
           .gpus = request.gpus_per_node,
           .memory = request.memory}};
}

std::optional<InexpressibleKey> inexpressible_key(const Submission& submission,
                                                  const SubmissionRequest& request) {
  const std::pair<std::string_view, bool> asked[] = {{"resources.walltime", request.unlimited},
                                                     {"resources.memory", request.memory.has_value()},
                                                     {"resources.chunks", !request.chunks.empty()},
                                                     {"resources.gpu-type", !request.gpu_type.empty()},
                                                     {"resources.constraint", !request.constraint.empty()},
                                                     {"resources.exclusive", request.exclusive},
                                                     {"resources.qos", !request.qos.empty()},
                                                     {"resources.mail", !request.mail.empty()}};
  for (const InexpressibleKey& one : submission.inexpressible())
    for (const auto& [key, is_asked] : asked)
      if (is_asked && key == one.key) return one;
  return std::nullopt;
}

namespace {

// What a program says of its usage has every option in it, and blames none.
std::string without_usage(std::string_view refusal) {
  const std::string text = lower(refusal);
  return text.substr(0, text.find("usage:"));
}

// An option that it does not know, or a value that it repeats: the last one that it may mean.
Blame named_option(const Submission& submission, const std::vector<Directive>& directives,
                   std::string_view said) {
  for (auto line = directives.rbegin(); line != directives.rend(); ++line) {
    if (line->key.empty()) continue;
    const std::string option = lower(line->text.substr(submission.marker().size() + 1));
    const std::string name = option.substr(0, option.find_first_of("= "));
    if (name.size() > 2 && has_word(said, name)) return {&*line, line->key};
  }
  return {};
}

// The line of the key, else one that has the word: several keys may be in one line.
Blame line_about(const std::vector<Directive>& directives, const RefusalKeyword& blamed) {
  for (const Directive& line : directives)
    if (line.key == blamed.key) return {&line, line.key};
  for (const Directive& line : directives)
    if (!line.key.empty() && lower(line.text).find(blamed.word) != std::string::npos)
      return {&line, std::string(blamed.key)};
  for (const Directive& line : directives)
    if (!blamed.option.empty() && line.text.find(blamed.option) != std::string::npos)
      return {&line, line.key};
  return {};
}

}  // namespace

Blame blame(const Submission& submission, const std::vector<Directive>& directives,
            std::string_view refusal) {
  const std::string said = without_usage(refusal);
  if (Blame named = named_option(submission, directives, said); named.line != nullptr) return named;
  for (const RefusalKeyword& blamed : submission.blamed_words())
    if (said.find(blamed.word) != said.npos)
      if (Blame found = line_about(directives, blamed); found.line != nullptr) return found;
  for (const std::string& word : quoted_words(said))
    for (const Directive& line : directives)
      if (!line.key.empty() && has_word(lower(line.text), word)) return {&line, line.key};
  return {};
}

Result<void> check_taken(const Submission& submission, const std::string& job_id,
                         const Environment& environment, const CommandRunner& commands,
                         const std::function<void(Seconds)>& pause) {
  constexpr Seconds step(0.5);
  const auto command = [&](const Argv& argv) {
    return commands.run(
        {.argv = argv, .environment = submission.environment(environment), .limit = Seconds(20)});
  };
  for (Seconds waited(0); waited < submission.doubts_for(); waited += step) {
    if (waited.count() > 0) pause(step);
    const auto state = command(submission.state_command(job_id));
    if (!state || submission.is_alive(*state).value_or(false)) return {};  // it runs, or nobody answers
    const auto why = submission.why_never(*state);
    if (!why) continue;
    if (why->empty()) return {};
    const auto withdrawn = command(submission.cancel_command(job_id));
    const bool gone = withdrawn && withdrawn->status.success();
    return fail(Error{
        .kind = ErrorKind::allocation,
        .what = fmt::format("{} took job {} and would never run it: {}", submission.name(), job_id, *why),
        .where = {},
        .hint = gone ? "the job is withdrawn; ask for what the cluster has"
                     : "the job could not be withdrawn: it is still in the queue",
        .also = {}});
  }
  return {};
}

Result<std::string> submit_job(const Submission& submission, const std::vector<Directive>& directives,
                               const std::string& script, const std::string& after,
                               const Environment& environment, const CommandRunner& commands) {
  const Argv argv = submission.submit_command(script, after);
  const CommandOutput output = TRY(commands.run(
      {.argv = argv, .environment = submission.environment(environment), .limit = kSubmitLimit}));
  // Banners may stand on either stream; the id is printed on stdout alone.
  if (output.status.success()) return submission.job_id(output.out);
  const std::string said(trim(output.err.empty() ? output.out : output.err));
  Error error{.kind = ErrorKind::unavailable,
              .what = fmt::format("{} refused the job ({})", submission.name(), output.status.text()),
              .where = {},
              .hint = "see the whole script with --dry-run",
              .also = said.empty() ? std::vector<std::string>{} : split(said, '\n')};
  if (const Blame blamed = blame(submission, directives, said); blamed.line != nullptr) {
    error.also.push_back("directive: " + blamed.line->text);
    const bool placed = blamed.key == blamed.line->key && !blamed.line->place.empty();
    error.hint = fmt::format("it comes from {}{}", blamed.key, placed ? " at " + blamed.line->place : "");
  }
  return fail(std::move(error));
}

}  // namespace dlrun
