#include "src/cli/command_line.hpp"

#include <doctest/doctest.h>

#include "src/cli/answer.hpp"
#include "src/cli/cmd_frameworks.hpp"
#include "src/cli/cmd_hosts.hpp"
#include "src/cli/cmd_list.hpp"
#include "src/cli/cmd_plan.hpp"
#include "src/cli/cmd_run.hpp"
#include "src/cli/cmd_submit.hpp"
#include "src/cli/commands.hpp"

using namespace dlrun;
using cli::read_command_line;

namespace {

std::string error_of(const std::vector<std::string>& words) {
  const auto line = read_command_line(words);
  REQUIRE_FALSE(line.has_value());
  CHECK(line.error().kind == ErrorKind::usage);
  return line.error().text();
}

// The command with its options as they were read.
template <class Which>
Which read(const std::vector<std::string>& words) {
  const auto line = read_command_line(words);
  REQUIRE_MESSAGE(line.has_value(), line.error().text());
  const auto* command = dynamic_cast<const Which*>(line->command.get());
  REQUIRE(command != nullptr);
  return *command;
}

cli::JobOptions job_of(const std::vector<std::string>& words) {
  return read<cli::RunCommand>(words).job;
}

std::string nodes_of(const cli::JobOptions& job) {
  for (const plan::Override& one : job.overrides)
    if (one.path == "resources.nodes") return one.value;
  return {};
}

std::string answer(const std::vector<std::string>& words) {
  return read<cli::Answer>(words).text;
}

}  // namespace

TEST_CASE("run is the command where none is named") {
  CHECK(job_of({"train.yaml"}).job_file == "train.yaml");
  CHECK(job_of({"run", "train.yaml"}).job_file == "train.yaml");
  CHECK(nodes_of(job_of({"--nodes", "2", "train.yaml"})) == "2");
}

TEST_CASE("what follows -- is the program's, whatever it looks like") {
  const auto job = job_of({"--framework", "mpi", "--", "./a.out", "--nodes", "7", "--", "x"});
  CHECK(job.program == std::vector<std::string>{"./a.out", "--nodes", "7", "--", "x"});
  CHECK(nodes_of(job).empty());
  CHECK(job_of({"--", "plan", "--help"}).program == std::vector<std::string>{"plan", "--help"});
}

TEST_CASE("--set takes one value and may stand several times, before and after the file") {
  const auto job = job_of({"--set", "a=1", "job.yaml", "--set", "b=x y"});
  CHECK(job.sets == std::vector<std::string>{"a=1", "b=x y"});
  CHECK(job.job_file == "job.yaml");
}

TEST_CASE("a chain is of so many links or of as many as it takes; only then there is something to plan") {
  const auto submit = [](const std::vector<std::string>& words) { return read<cli::SubmitCommand>(words); };
  CHECK(submit({"submit", "--chain", "8", "x.yaml"}).chain_links() == 8);
  CHECK_FALSE(submit({"submit", "x.yaml"}).chain_links());
  const auto automatic = submit({"submit", "--chain", "auto", "--epochs", "90", "--mtbf", "30d", "x.yaml"});
  CHECK(automatic.chain == "auto");
  CHECK(automatic.epoch_count() == 90);
  CHECK_FALSE(automatic.chain_links());
  for (const char* chain : {"0", "-1", "some", "100001"})
    CHECK(error_of({"submit", "--chain", chain, "x.yaml"}) ==
          fmt::format("--chain: unknown value '{}'; expected auto or a number in [1, 100000]\n"
                      "  hint: dlrun submit --help",
                      chain));
  CHECK(error_of({"submit", "--chain", "auto", "--epochs", "0", "x.yaml"}) ==
        "--epochs: 0 is out of range [1, 1000000000]\n  hint: dlrun submit --help");
  CHECK(error_of({"submit", "--chain", "3", "--epochs", "90", "x.yaml"}) ==
        "--epochs needs --chain auto\n  hint: add --chain auto");
}

TEST_CASE("mistyped words are answered with what may have been meant") {
  CHECK(error_of({"--nodse", "2", "x.yaml"}) == "unknown flag '--nodse'\n  hint: did you mean '--nodes'?");
  CHECK(error_of({"plna"}) == "'plna' is neither a command nor a job file\n  hint: did you mean 'plan'?");
  CHECK(error_of({}).starts_with("no job file and no command"));
  CHECK(error_of({"plan", "--color", "pink", "x.yaml"}) ==
        "--color: unknown value 'pink'; expected auto, always or never\n  hint: dlrun plan --help");
  CHECK(error_of({"chain", "stats"}) ==
        "unknown action 'stats'; expected status or stop\n  hint: did you mean 'status'?");
  CHECK(error_of({"chain"}) == "the action is missing; expected status or stop\n  hint: dlrun chain --help");
  CHECK(error_of({"hosts", "remove", "n1"}) ==
        "unknown action 'remove'; expected expand, compress or count\n  hint: dlrun hosts --help");
  CHECK(error_of({"python3"}) ==
        "'python3' is neither a command nor a job file\n"
        "  hint: to run a program, put it after --: dlrun -- python3");
  CHECK(error_of({"a.yaml", "b.yaml", "c.yaml"}) ==
        "unexpected argument 'b.yaml'\n  hint: give one job file, and the arguments of its program after --");
  CHECK(error_of({"allocation", "here"}) == "unexpected argument 'here'\n  hint: dlrun allocation --help");
}

TEST_CASE("flags that every command takes may stand before it, and before the word behind help") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--json", "list"},
                                                {"-q", "--color", "never", "list"},
                                                {"--color=never", "list"}}) {
    CAPTURE(words.back());
    (void)read<cli::ListCommand>(words);
  }
  CHECK(read_command_line({"--json", "list"}).value().common.json);
  CHECK(answer({"help", "--json", "plan"}) == answer({"plan", "--help"}));
  CHECK(answer({"--json", "help", "plan"}) == answer({"plan", "--help"}));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"help", "--json", "nosuch"},
                                                {"--json", "help", "nosuch"},
                                                {"help", "--color", "never", "nosuch"}})
    CHECK(error_of(words).starts_with("unknown command 'nosuch'"));
  CHECK(error_of({"help", "plan", "nosuch"}) == "unexpected argument 'nosuch'\n  hint: dlrun plan --help");
  CHECK(error_of({"--nodes", "2", "list"}) ==
        "'list' is a command, and not the first word\n  hint: write dlrun list first, then its flags");
}

TEST_CASE("--color takes its three words") {
  const auto color = [](const std::vector<std::string>& words) {
    return read_command_line(words).value().common.color_choice();
  };
  CHECK(color({"x.yaml"}) == cli::ColorChoice::automatic);
  CHECK(color({"--color", "never", "x.yaml"}) == cli::ColorChoice::never);
  CHECK(color({"--color=always", "x.yaml"}) == cli::ColorChoice::always);
}

TEST_CASE(
    "each command's help begins with how it is called and has examples, and nothing of CLI11's innards") {
  for (const std::string& command : cli::command_names()) {
    CAPTURE(command);
    const std::string help = answer({command, "--help"});
    CHECK(help.find("Usage: dlrun " + command + " [OPTIONS]") != std::string::npos);
    CHECK(help.find("Examples:\n  ") != std::string::npos);
    for (const std::string innards : {"->", ":{", "(0x)", ":INT", "N|auto:", "JOB TEXT", "RUN TEXT"}) {
      CAPTURE(innards);
      CHECK(help.find(innards) == std::string::npos);
    }
  }
}

TEST_CASE("an empty value is refused: a shell variable was not set") {
  for (const char* flag : {"--run-dir", "--name", "--nodes", "--allocation"})
    CHECK(error_of({flag, "", "x.yaml"}) ==
          fmt::format("{} has an empty value\n  hint: give it a value, or remove it", flag));
  CHECK(error_of({""}).starts_with("JOB has an empty value"));
  CHECK(job_of({"--set", "name=", "x.yaml"}).sets.size() == 1);  // an empty YAML value is said on purpose
}

TEST_CASE("help and version answer by themselves, with examples") {
  const auto help = answer({"run", "--help"});
  CHECK(help.find("Examples:") != std::string::npos);
  CHECK(help.find("--tasks-per-node") != std::string::npos);
  CHECK(answer({"--version"}).starts_with("dlrun 0."));
  CHECK(answer({"--help"}).find("frameworks") != std::string::npos);
  CHECK(answer({"--help"}).find("Usage: dlrun [run] [OPTIONS] JOB.yaml") != std::string::npos);
  CHECK(answer({"report", "--help"}).find("[OPTIONS] [RUN...]\n") != std::string::npos);
}

TEST_CASE("colours and verbosity are read for every command") {
  const auto options = read_command_line({"plan", "x.yaml", "--color", "never", "--json", "-q"}).value();
  CHECK(options.common.color_choice() == cli::ColorChoice::never);
  CHECK(options.common.json);
  CHECK(options.common.verbosity() == cli::Verbosity::quiet);
}

TEST_CASE("frameworks takes nothing, a name, or check and a file") {
  const auto frameworks = [](const std::vector<std::string>& words) {
    return read<cli::FrameworksCommand>(words);
  };
  CHECK(frameworks({"frameworks"}).name.empty());
  CHECK(frameworks({"frameworks", "mpi"}).name == "mpi");
  CHECK(frameworks({"frameworks", "check", "own.yaml"}).file == "own.yaml");
  CHECK(frameworks({"frameworks", "mpi"}).file.empty());
  CHECK(read_command_line({"frameworks", "check"}).error().what == "frameworks check: no file to check");
  CHECK(read_command_line({"frameworks", "mpi", "plain"}).error().what ==
        "frameworks takes one name; unexpected argument 'plain'");
}

TEST_CASE("flags of srun, mpirun and torchrun are answered with ours") {
  CHECK(error_of({"-n", "4"}) ==
        "unknown flag '-n'\n  hint: dlrun counts ranks per node: --nodes N and --tasks-per-node N");
  for (const char* flag : {"-n4", "-np", "--ntasks=4"})
    CHECK(error_of({flag, "x.yaml"}).find("--tasks-per-node N") != std::string::npos);
  for (const char* flag : {"--ntasks-per-node", "--nproc_per_node=2", "--nproc-per-node", "-npernode"})
    CHECK(error_of({flag, "x.yaml"}).ends_with("hint: did you mean --tasks-per-node?"));
  CHECK(error_of({"-N2", "x.yaml"}) == "unknown flag '-N2'\n  hint: did you mean --nodes?");
  CHECK(error_of({"--gres=gpu:2", "x.yaml"}) ==
        "unknown flag '--gres'\n  hint: did you mean --gpus-per-node?");
  CHECK(error_of({"-t", "1:00:00", "x.yaml"}).ends_with("did you mean --walltime?"));
  CHECK(error_of({"submit", "-p", "gpu", "x.yaml"}).ends_with("dlrun submit --set resources.queue=NAME"));
  CHECK(error_of({"submit", "--mem=64G", "x.yaml"}).ends_with("--set resources.memory=SIZE"));
  CHECK(error_of({"plan", "-z", "x.yaml"}) == "unknown flag '-z'\n  hint: dlrun plan --help");
  CHECK(job_of({"-q", "x.yaml"}).job_file == "x.yaml");
}

TEST_CASE("help is a word too") {
  CHECK(answer({"help"}) == answer({"--help"}));
  CHECK(answer({"help", "chain"}) == answer({"chain", "--help"}));
  CHECK(answer({"help", "help"}) == answer({"--help"}));
  CHECK(answer({"help", "--json"}) == answer({"--help"}));
  CHECK(answer({"help", "run"}) == answer({"run", "--help"}));
  CHECK(answer({"job.yaml", "--help"}) == answer({"run", "--help"}));
}

TEST_CASE("help for what is no command is no answer") {
  CHECK(error_of({"help", "nosuch"}) == "unknown command 'nosuch'\n  hint: dlrun --help shows all commands");
  CHECK(error_of({"help", "submti"}) ==
        "unknown command 'submti'\n  hint: did you mean 'dlrun help submit'?");
  CHECK(read_command_line({"help", "nosuch"}).error().kind == ErrorKind::usage);
  CHECK(error_of({"submti", "--help"}) ==
        "'submti' is neither a command nor a job file\n  hint: did you mean 'submit'?");
}

TEST_CASE("the words of hosts are taken as they stand, before and after --") {
  const auto hosts = read<cli::HostsCommand>({"hosts", "count", "n[1-3]", "--unique", "--", "-x"});
  CHECK(hosts.action == cli::HostsCommand::Action::count);
  CHECK(hosts.lists == std::vector<std::string>{"n[1-3]", "-x"});
  CHECK(hosts.unique);
  CHECK(error_of({"hosts", "expand"}).starts_with("no host list"));
  CHECK(error_of({"hosts", "count", "a", "-z"}) == "unknown flag '-z'\n  hint: dlrun hosts --help");
  CHECK(error_of({"hosts"}).starts_with("the action is missing; expected expand, compress or count"));
}

TEST_CASE("two flags that exclude each other are refused") {
  CHECK(error_of({"--hosts", "a", "--hostfile", "f", "x.yaml"}).find("--host") != std::string::npos);
  CHECK(error_of({"allocation", "--hosts", "a", "--allocation", "f"}).find("--hosts") != std::string::npos);
  CHECK(
      error_of({"submit", "--chain", "auto", "--probe", "1h", "--measured", "r", "x.yaml"}).find("--probe") !=
      std::string::npos);
}
