#include "src/cli/options.hpp"

#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/cli/help_examples.hpp"
#include "src/cli/other_flags.hpp"

namespace dlrun::cli {
namespace {

const std::vector<std::string> kCommands{"run",        "plan",  "submit",     "chain",
                                         "allocation", "hosts", "frameworks", "slurm-end"};

// CLI11's own checks print their innards, in the help and in errors.
CLI::Validator one_of(std::vector<std::string> words) {
  return {[words = std::move(words)](std::string& word) {
            if (std::find(words.begin(), words.end(), word) != words.end()) return std::string();
            return fmt::format("'{}' is none of {}", word, join(words, ", "));
          },
          ""};
}

void add_common(CLI::App& app, CommonOptions& common) {
  static const std::map<std::string, ColorChoice> choices{
      {"auto", ColorChoice::automatic}, {"always", ColorChoice::always}, {"never", ColorChoice::never}};
  app.add_option_function<std::string>(
         "--color", [&common](const std::string& word) { common.color = choices.at(word); },
         "auto, always or never (NO_COLOR is respected)")
      ->check(one_of({"auto", "always", "never"}))
      ->type_name("WHEN");
  app.add_flag_callback(
      "-q,--quiet", [&common] { common.verbosity = Verbosity::quiet; }, "only the ranks' output and errors");
  app.add_flag_callback(
      "-v,--verbose", [&common] { common.verbosity = Verbosity::verbose; }, "say more of what is done");
  app.add_flag("--json", common.json, "machine-readable output on stdout; text for people goes to stderr");
}

void add_named_hosts(CLI::App& app, HostFileOptions& named) {
  app.add_option("--hostfile", named.hostfile, "use the hosts of this file; - for standard input")
      ->type_name("FILE")
      ->excludes("--allocation");
  app.add_option("--private-hostfile", named.private_hostfile,
                 "the address by which ranks reach each host of --hostfile")
      ->type_name("FILE")
      ->excludes("--allocation");
  app.add_option("--hosts", named.hosts, "use these hosts: a:2,b:2 or n[1-4]:8")
      ->type_name("LIST")
      ->excludes("--allocation")
      ->excludes("--hostfile");
}

void add_job(CLI::App& app, JobOptions& job) {
  app.add_option("JOB", job.job_file, "job file (YAML)");
  app.add_option("--framework", job.framework, "adapter to run under; with -- CMD no job file is needed")
      ->type_name("NAME");
  app.add_option("--name", job.name, "name of the job and of its run directory")->type_name("NAME");
  app.add_option("--nodes", job.nodes, "nodes to use")->type_name("N");
  app.add_option("--gpus-per-node", job.gpus_per_node, "GPUs to use on each node")->type_name("N");
  app.add_option("--tasks-per-node", job.tasks_per_node, "ranks on each node")->type_name("N");
  app.add_option("--cpus-per-task", job.cpus_per_task, "cores of each rank")->type_name("N");
  app.add_option("--walltime", job.walltime,
                 "time limit of the job: what submit asks for; else where no scheduler tells its end")
      ->type_name("TIME");
  app.add_option("--mpi", job.mpi, "how ranks find their MPI world: auto, pmix, pmi1, engine, none")
      ->type_name("HOW");
  app.add_option("--via", job.via, "how agents get onto the nodes: auto, local, slurm, ssh, ...")
      ->type_name("HOW");
  app.add_flag("--stage", job.stage, "copy dlrun to nodes that do not have it at the same place");
  app.add_option("--retries", job.retries, "further attempts after a failure, without nodes that were lost")
      ->type_name("K");
  app.add_option("--no-output-limit", job.no_output_limit,
                 "the job is hung when no rank prints anything for so long")
      ->type_name("DURATION");
  app.add_option("--no-progress-limit", job.no_progress_limit,
                 "the job is hung when no new step is reported for so long")
      ->type_name("DURATION");
  app.add_flag("--no-bind", job.no_bind, "do not bind ranks to cores");
  app.add_option("--set", job.sets, "set any key of the job file")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  app.add_option("--run-dir", job.run_dir, "run directory (default: runs/NAME-ID)")->type_name("DIR");
  app.add_option("--allocation", job.allocation_file, "use this allocation instead of the one found")
      ->type_name("FILE");
  add_named_hosts(app, job.named);
  app.add_option("--scheduler", job.scheduler, "whose allocation to use (default: the first found)")
      ->type_name("NAME");
  app.add_option("--framework-dir", job.framework_dir, "folder with more adapters")->type_name("DIR");
}

// CLI11's texts are full of its own terms; these are ours.
Error usage_error(const CLI::App& app, std::string what, std::string hint = {}) {
  if (hint.empty())
    hint = fmt::format("{} --help", app.get_parent() == nullptr ? "dlrun" : "dlrun " + app.get_name());
  return Error{.kind = ErrorKind::usage, .what = std::move(what), .where = {}, .hint = std::move(hint)};
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// "\n" and "\t" in a separator, as shells pass them on.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (next != 'n' && next != 't' && next != '\\') {
      out += text[i];
      continue;
    }
    out += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
    ++i;
  }
  return out;
}

// The first word that is a flag but none of ours.
std::optional<Error> unknown_flag(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<std::string> names = flag_names(app);
  for (const std::string& word : words) {
    if (word.size() < 2 || word[0] != '-' || is_digit(word[1]) || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string_view other = hint_for_other_flag(word);
    const std::string near = word.starts_with("--") ? nearest(name, names) : "";
    return usage_error(app, fmt::format("unknown flag '{}'", name),
                       !other.empty() ? std::string(other)
                       : near.empty() ? ""
                                      : fmt::format("did you mean '{}'?", near));
  }
  return std::nullopt;
}

// "auto", or how many links; the answer is what is wrong.
std::string check_chain(const std::string& text) {
  if (text == "auto" || parse_integer(text, 1, 100000)) return {};
  return fmt::format("'{}' is neither auto nor a number from 1 to 100000", text);
}

std::string check_epochs(const std::string& text) {
  if (parse_integer(text, 1, 1'000'000'000)) return {};
  return fmt::format("'{}' is no number of epochs", text);
}

// What only the planner of chains can use.
std::optional<Error> useless_planning_flag(const CLI::App& app, const SubmitOptions& submit) {
  if (submit.chain == "auto") return std::nullopt;
  for (const char* flag : {"--epochs", "--mtbf", "--measured", "--probe"})
    if (app.count(flag) > 0)
      return usage_error(app, fmt::format("{} is for the planner of chains", flag), "add --chain auto");
  return std::nullopt;
}

bool is_command(const std::string& word) {
  return std::find(kCommands.begin(), kCommands.end(), word) != kCommands.end();
}

// "dlrun help nosuch", which must not pass for an answer. A flag behind help asks for the same.
std::optional<Error> unknown_help(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.size() < 2 || words[0] != "help" || words[1] == "help" || words[1].starts_with('-') ||
      is_command(words[1]))
    return std::nullopt;
  const std::string near = nearest(words[1], kCommands);
  return usage_error(
      app, fmt::format("unknown command '{}'", words[1]),
      near.empty() ? "dlrun --help shows all commands" : fmt::format("did you mean 'dlrun help {}'?", near));
}

// "dlrun help" and "dlrun help plan", as other programs have them.
std::vector<std::string> help_words(const std::vector<std::string>& words) {
  if (words.size() > 1 && is_command(words[1])) return {words[1], "--help"};
  return {"--help"};
}

// "dlrun JOB" is "dlrun run JOB". Only a first word can be a command, so a job file may be called
// "plan.yaml".
std::vector<std::string> with_command(std::vector<std::string> words) {
  if (!words.empty() && words[0] == "help") words = help_words(words);
  const bool asks_program =
      words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "--version";
  if (!asks_program && !is_command(words[0])) words.insert(words.begin(), "run");
  return words;
}

// A word that looks like a mistyped command and is no file.
std::optional<Error> mistyped_command(const CLI::App& app, const std::string& word) {
  std::error_code problem;
  if (word.empty() || word[0] == '-' || word.find_first_of("./") != std::string::npos ||
      std::filesystem::exists(word, problem))
    return std::nullopt;
  const std::string near = nearest(word, kCommands);
  return usage_error(
      app, fmt::format("'{}' is neither a command nor a job file", word),
      near.empty() ? fmt::format("dlrun --help; a program of your own stands behind --: dlrun -- {}", word)
                   : fmt::format("did you mean '{}'?", near));
}

// What CLI11 found wrong. It names words that are too many all at once, and from the end.
Error misread(const CLI::App& app, const CLI::ParseError& problem) {
  const std::vector<std::string> extra = app.remaining();
  if (dynamic_cast<const CLI::ExtrasError*>(&problem) == nullptr || extra.empty())
    return usage_error(app, problem.what());
  const std::string what = fmt::format("'{}' is one word too many", extra[0]);
  if (app.get_option_no_throw("--set") == nullptr) return usage_error(app, what);
  return usage_error(app, what, "one job file is taken; words for its program stand behind --");
}

// An empty value is what is left of a shell variable that was not set: it must not pass for no flag.
std::optional<Error> empty_value(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.empty())
        return usage_error(app, fmt::format("{} has an empty value", option->get_name()),
                           "give it a value, or leave it out");
  return std::nullopt;
}

// CLI11 reads "[1-3]" as a list of its own, so the words of `dlrun hosts` are taken as they stand.
Result<HostsOptions> hosts_options(const CLI::App& app, HostsOptions hosts,
                                   const std::vector<std::string>& words,
                                   const std::vector<std::string>& rest) {
  const std::vector<std::string> left = app.remaining();
  for (const std::string& word : left)
    if (word.size() > 1 && word[0] == '-') {
      if (auto flag = unknown_flag(app, words)) return fail(std::move(*flag));
      return fail(usage_error(app, fmt::format("unknown flag '{}'", word)));
    }
  static const std::vector<std::string> actions{"expand", "compress", "count"};
  if (left.empty()) return fail(usage_error(app, "what to do is missing: expand, compress or count"));
  const auto action = std::find(actions.begin(), actions.end(), left[0]);
  if (action == actions.end())
    return fail(usage_error(app, fmt::format("'{}' is nothing that hosts can do", left[0]),
                            did_you_mean(left[0], actions)));
  hosts.action = static_cast<HostsOptions::Action>(action - actions.begin());
  hosts.words.assign(left.begin() + 1, left.end());
  hosts.words.insert(hosts.words.end(), rest.begin(), rest.end());
  if (hosts.words.empty())
    return fail(usage_error(app, "no host list", "name one, or '-' to read them from standard input"));
  hosts.separator = unescaped(hosts.separator);
  return hosts;
}

// Nothing, a name, or "check FILE".
Result<FrameworksOptions> frameworks_options(FrameworksOptions out, const std::string& name,
                                             const std::string& file) {
  const bool check = name == "check";
  if (check == file.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = check ? "frameworks check: no file to check"
                                    : fmt::format("frameworks takes one name, and not also '{}'", file),
                      .where = {},
                      .hint = "dlrun frameworks check my-framework.yaml"});
  (check ? out.check : out.name) = check ? file : name;
  return out;
}

}  // namespace

std::string version_text();  // version.cpp

std::optional<int> SubmitOptions::chain_links() const {
  if (const auto links = parse_integer(chain, 1, 100000)) return static_cast<int>(*links);
  return std::nullopt;
}

std::vector<std::string> command_names() {
  return kCommands;
}

Result<Options> read_command_line(const std::vector<std::string>& arguments) {
  // What follows "--" is the program's, whatever it looks like.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const std::vector<std::string> rest(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
  std::vector<std::string> words = with_command({arguments.begin(), dashes});
  if (words.empty() && !rest.empty()) words = {"run"};

  Options options;
  RunOptions run;
  PlanOptions plan;
  SubmitOptions submit;
  ChainOptions chain;
  AllocationOptions allocation;
  HostsOptions hosts;
  FrameworksOptions frameworks;
  CLI::App app("dlrun: launches distributed training jobs on clusters and on this machine", "dlrun");
  app.footer(
      "'dlrun JOB.yaml' is 'dlrun run JOB.yaml'. 'dlrun COMMAND --help' shows a command's flags and "
      "examples.\nman dlrun has the whole.");
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  if (auto unknown = unknown_help(app, arguments)) return fail(std::move(*unknown));

  // A command's many flags are made only where it is the one: agents start by the thousand.
  const auto add_job_of = [&words](CLI::App& command, JobOptions& job) {
    if (!words.empty() && words[0] == command.get_name()) add_job(command, job);
  };
  CLI::App* run_command = app.add_subcommand("run", "run a job")->footer(kRunExamples);
  add_job_of(*run_command, run.job);
  run_command
      ->add_option("--spec", run.job.frozen_job, "run the job of this submission; submit writes the file")
      ->type_name("FILE");
  run_command->add_option("--tee", run.tee, "show these ranks' lines only: 0-3,7 or worker:0,ps")
      ->type_name("RANKS");
  run_command
      ->add_option("--stdin", run.input_rank, "the rank that reads the standard input; without it none does")
      ->type_name("RANK|none");
  run_command->add_flag("--no-fold", run.no_fold, "on a terminal: do not make equal lines of ranks one");
  run_command
      ->add_option("--link-of", run.link_of, "the run is a link of this chain; submit --chain writes it")
      ->type_name("DIR");
  CLI::App* plan_command =
      app.add_subcommand("plan", "show what would run where, and start nothing")->footer(kPlanExamples);
  add_job_of(*plan_command, plan.job);
  plan_command->add_option("--scripts", plan.scripts, "write the node scripts into this folder")
      ->type_name("DIR");
  plan_command->add_flag("--explain", plan.explain, "show every setting and where it came from");
  CLI::App* submit_command =
      app.add_subcommand("submit", "hand the job to the scheduler of this cluster")->footer(kSubmitExamples);
  add_job_of(*submit_command, submit.job);
  submit_command->add_flag("--dry-run", submit.dry_run, "show the script and the command, submit nothing");
  submit_command
      ->add_option(
          "--chain", submit.chain,
          "go on in further jobs until the training is done, N jobs at most; auto: as many as it takes")
      ->type_name("N|auto")
      ->check(CLI::Validator(check_chain, ""));
  submit_command->add_option("--epochs", submit.epochs, "with --chain auto: how long the training is to be")
      ->type_name("E")
      ->check(CLI::Validator(check_epochs, ""));
  submit_command
      ->add_option("--mtbf", submit.mtbf,
                   "with --chain auto: mean time between failures of a node; sets the checkpoint interval")
      ->type_name("TIME");
  submit_command
      ->add_option(
          "--measured", submit.measured,
          "with --chain auto: the run that tells what steps and checkpoints take (default: the newest)")
      ->type_name("RUN");
  submit_command->add_option("--probe", submit.probe, "with --chain auto: measure the job here for so long")
      ->type_name("TIME")
      ->excludes("--measured");
  CLI::App* chain_command =
      app.add_subcommand("chain", "show or stop a chain of jobs")->footer(kChainExamples);
  chain_command->add_option("ACTION", chain.action, "status or stop")
      ->required()
      ->check(one_of({"status", "stop"}));
  chain_command->add_option("DIR", chain.folder, "folder of the chain (default: the newest one below runs/)");
  chain_command->add_flag("--now", chain.now, "with stop: end the running job at once");
  CLI::App* allocation_command =
      app.add_subcommand("allocation", "show the nodes we may use, and how that is known")
          ->footer(kAllocationExamples);
  allocation_command
      ->add_option("--allocation", allocation.file, "show this file: an allocation, or R of Flux")
      ->type_name("FILE");
  add_named_hosts(*allocation_command, allocation.named);
  allocation_command->add_option("--scheduler", allocation.scheduler, "ask this scheduler only")
      ->type_name("NAME");
  CLI::App* hosts_command = app.add_subcommand("hosts", "expand, compress and count host lists");
  hosts_command->footer(kHostsExamples)->allow_extras();
  hosts_command
      ->add_option("--separator", hosts.separator, "with expand: between names (default: a line each)")
      ->type_name("TEXT");
  hosts_command->add_flag("--unique", hosts.unique, "take each name once, where it is first");
  CLI::App* frameworks_command = app.add_subcommand("frameworks", "list the adapters, show one, or check one")
                                     ->footer(kFrameworksExamples);
  std::string framework_name, framework_file;
  frameworks_command->add_option("NAME", framework_name,
                                 "show this one; or 'check': look for mistakes in FILE");
  frameworks_command->add_option("FILE", framework_file, "the adapter to check");
  frameworks_command->add_option("--framework-dir", frameworks.framework_dir, "folder with more adapters")
      ->type_name("DIR");
  CLI::App* slurm_end_command =
      app.add_subcommand("slurm-end", "internal: when a Slurm job ends, from libslurm")->group("");
  SlurmEndOptions slurm_end;
  slurm_end_command->add_option("JOB", slurm_end.job_id, "its number")->required();
  for (CLI::App* command : {run_command, plan_command, submit_command, chain_command, allocation_command,
                            hosts_command, frameworks_command})
    add_common(*command, options.common);

  CLI::App* chosen = words.empty() || !is_command(words[0]) ? &app : app.get_subcommand(words[0]);
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes a vector from its end
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    // "dlrun nosuch --help" is not to show the help of run.
    if (chosen == run_command && !is_command(arguments.front()) && arguments.front() != "help")
      if (auto mistyped = mistyped_command(app, arguments.front())) return fail(std::move(*mistyped));
    const auto parsed = app.get_subcommands();
    options.command = Answer{parsed.empty() ? app.help() : parsed[0]->help("dlrun")};
    return options;
  } catch (const CLI::CallForVersion& answer) {
    options.command = Answer{answer.what()};
    return options;
  } catch (const CLI::ParseError& problem) {
    if (words.empty()) return fail(usage_error(app, "no job file and no command"));
    if (auto flag = unknown_flag(*chosen, words)) return fail(std::move(*flag));
    if (auto mistyped = mistyped_command(app, run.job.job_file)) return fail(std::move(*mistyped));
    return fail(misread(*chosen, problem));
  }
  if (auto empty = empty_value(*chosen)) return fail(std::move(*empty));

  if (chosen == run_command) {
    if (auto mistyped = mistyped_command(app, run.job.job_file)) return fail(std::move(*mistyped));
    run.job.words = rest;
    options.command = run;
  } else if (chosen == plan_command) {
    plan.job.words = rest;
    options.command = plan;
  } else if (chosen == submit_command) {
    if (auto useless = useless_planning_flag(*submit_command, submit)) return fail(std::move(*useless));
    submit.job.words = rest;
    options.command = submit;
  } else if (chosen == chain_command) {
    options.command = chain;
  } else if (chosen == allocation_command) {
    options.command = allocation;
  } else if (chosen == hosts_command) {
    options.command = TRY(hosts_options(*hosts_command, hosts, words, rest));
  } else if (chosen == frameworks_command) {
    options.command = TRY(frameworks_options(frameworks, framework_name, framework_file));
  } else if (chosen == slurm_end_command) {
    options.command = slurm_end;
  }
  return options;
}

}  // namespace dlrun::cli
