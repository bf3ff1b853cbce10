// The node script does its work when bash runs it: these tests render it for small plans, run it, and look at
// what the ranks saw.
#include "src/render/node_script.hpp"

#include <random>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include "src/base/environment.hpp"
#include "src/base/file.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::test;
namespace fs = std::filesystem;

namespace {

struct Ran {
  int code = 0;
  std::string out, err;
};

plan::Plan plan_of(const Folder& folder, const std::vector<Argv>& ranks) {
  plan::Plan out;
  out.name = "demo";
  out.job_id = "demo-1";
  out.working_directory = folder.path;
  out.run_directory = folder.path;
  out.limits.grace = Seconds(60);
  out.nodes = {{.index = NodeIndex(0), .host = HostName("laptop")}};
  for (const Argv& argv : ranks) {
    plan::RankPlan rank;
    rank.rank = Rank(static_cast<int>(out.ranks.size()));
    rank.local_rank = LocalRank(rank.rank.get());
    rank.role = "worker";
    rank.environment["DLRUN_RANK"] = fmt::format("{}", rank.rank);
    rank.argv = argv;
    out.ranks.push_back(std::move(rank));
  }
  return out;
}

Ran run_shell(const Folder& folder, const std::string& command) {
  const std::string full =
      fmt::format("bash -c {} >{} 2>{}", shell_quote(command), shell_quote((folder.path / "out").string()),
                  shell_quote((folder.path / "err").string()));
  const int status = std::system(full.c_str());
  Ran out;
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  out.out = read_file(folder.path / "out").value();
  out.err = read_file(folder.path / "err").value();
  return out;
}

std::string write_script(const Folder& folder, const plan::Plan& plan) {
  const auto script = render::load_node_template(TEST_SOURCE_DIR);
  REQUIRE_MESSAGE(script.has_value(), script.error().text());
  const auto text = render::render_node_script(plan, NodeIndex(0), *script);
  REQUIRE_MESSAGE(text.has_value(), text.error().text());
  const fs::path file = folder.path / "node.sh";
  REQUIRE(replace_file(file, *text, Durability::none).has_value());
  return file.string();
}

Ran run_by_hand(const Folder& folder, const plan::Plan& plan) {
  return run_shell(folder, "bash " + write_script(folder, plan));
}

}  // namespace

TEST_CASE("every rank starts with its own environment, and words arrive as they were written") {
  const Folder folder;
  auto plan =
      plan_of(folder, {{"bash", "-c", "printf '%s|' \"$DLRUN_RANK\" \"$COMMON\" \"$@\" >out.$DLRUN_RANK", "x",
                        "it's", "$HOME", "two\nlines", "", "back\\slash"},
                       {"bash", "-c", "printf '%s|' \"$DLRUN_RANK\" >out.$DLRUN_RANK"}});
  plan.environment["COMMON"] = "`id` \"$(id)\" 'q'\nnewline";
  const Ran ran = run_by_hand(folder, plan);
  CHECK(ran.err.empty());
  CHECK(ran.code == 0);
  CHECK(read_file(folder.path / "out.0").value() ==
        "0|`id` \"$(id)\" 'q'\nnewline|it's|$HOME|two\nlines||back\\slash|");
  CHECK(read_file(folder.path / "out.1").value() == "1|");
}

TEST_CASE("whatever a value is, it arrives as it was") {
  const Folder folder;
  auto plan = plan_of(folder, {{"env", "-0"}});
  static const std::vector<std::string> parts{"'",   "\"",  "\\", "$(id)", "`id`", "${x}", "\n",
                                              "!!",  "#",   " ",  "\t",    "*",    "é",    "{{x}}",
                                              "}}}", "EOF", ";",  "&",     "\r",   "a"};
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    std::string value;
    for (auto n = random() % 7; n > 0; --n) value += parts[random() % parts.size()];
    plan.environment[fmt::format("V{}", i)] = value;
    plan.ranks[0].environment[fmt::format("R{}", i)] = value;
    plan.ranks[0].defaults[fmt::format("D{}", i)] = value;
  }
  const Ran ran = run_by_hand(folder, plan);
  CHECK(ran.err.empty());
  const Environment seen = Environment::from_entries(split(ran.out, '\0'));
  for (const auto& changes : {plan.environment, plan.ranks[0].environment, plan.ranks[0].defaults})
    for (const auto& [name, value] : changes) CHECK(seen.get(name, "missing") == value);
}

TEST_CASE("names that bash cannot export are left out; defaults give way") {
  const Folder folder;
  auto plan = plan_of(folder, {{"env"}});
  plan.environment = {{"MY-VAR", "1"}, {"GOOD", "2"}, {"a b; touch evil", "3"}};
  plan.ranks[0].defaults = {{"OMP_NUM_THREADS", "7"}, {"HAVE", "no"}};
  const std::string script = write_script(folder, plan);
  const Ran ran = run_shell(folder, "unset OMP_NUM_THREADS; HAVE=mine bash " + script);
  CHECK(ran.code == 0);
  CHECK(ran.out.find("GOOD=2\n") != std::string::npos);
  CHECK(ran.out.find("OMP_NUM_THREADS=7\n") != std::string::npos);
  CHECK(ran.out.find("HAVE=mine\n") != std::string::npos);
  CHECK(ran.out.find("MY-VAR") == std::string::npos);
  CHECK_FALSE(fs::exists(folder.path / "evil"));
}

TEST_CASE("the first rank that fails ends the others, and its code is the script's") {
  const Folder folder;
  const Ran ran = run_by_hand(
      folder,
      plan_of(folder, {{"sleep", "1000"}, {"bash", "-c", "exit 7"}, {"bash", "-c", "sleep 1000 & wait"}}));
  CHECK(ran.code == 7);
  CHECK(ran.err == "dlrun: laptop: rank 1 ended with exit code 7\n");
}

TEST_CASE("the job's files are written where they are not there yet") {
  const Folder folder;
  auto plan = plan_of(folder, {{"cat", "run/hosts/list.txt", "run/have"}});
  plan.run_directory = folder.path / "run";
  plan.files = {{"hosts/list.txt", "it's\n\"all\" here\n"}, {"have", "not written\n"}};
  REQUIRE(make_directories(folder.path / "run", Access::shared).has_value());
  REQUIRE(replace_file(folder.path / "run/have", "mine\n", Durability::none).has_value());
  const Ran ran = run_by_hand(folder, plan);
  CHECK(ran.code == 0);
  CHECK(ran.out == "it's\n\"all\" here\nmine\n");
}

TEST_CASE("a rank that a signal kills counts as 128 and its number; one that cannot start as 127") {
  const Folder folder;
  CHECK(run_by_hand(folder, plan_of(folder, {{"bash", "-c", "kill -9 $$"}, {"sleep", "1000"}})).code == 137);
  CHECK(run_by_hand(folder, plan_of(folder, {{"sleep", "1000"}, {"./not-there"}})).code == 127);
}

TEST_CASE("TERM to the script ends its ranks and their children") {
  const Folder folder;
  const std::string script = write_script(
      folder, plan_of(folder, {{"bash", "-c", "sleep 1000 & echo $! >child; wait"}, {"sleep", "1000"}}));
  const Ran ran =
      run_shell(folder, "bash " + script + " & pid=$!; cd " + folder.path.string() +
                            "; until [ -s child ]; do sleep 0.05; done; kill -TERM $pid; wait $pid; code=$?; "
                            "while kill -0 $(cat child) 2>/dev/null; do sleep 0.05; done; exit $code");
  CHECK(ran.code == 143);
}

TEST_CASE("the prolog runs once, before the ranks, which inherit its environment") {
  const Folder folder;
  auto plan = plan_of(folder, {{"bash", "-c", "echo $FROM_SETUP $FROM_VENV"}, {"true"}});
  REQUIRE(make_directories(folder.path / "my venv/bin", Access::shared).has_value());
  REQUIRE(replace_file(folder.path / "my venv/bin/activate", "export FROM_VENV=venv\n", Durability::none)
              .has_value());
  plan.prolog.activate = "source " + shell_quote((folder.path / "my venv/bin/activate").string());
  plan.prolog.setup = {"export FROM_SETUP=\"it's set\"  # a comment; with more",
                       "echo once >>" + (folder.path / "count").string()};
  const Ran ran = run_by_hand(folder, plan);
  CHECK(ran.code == 0);
  CHECK(ran.out == "it's set venv\n");
  CHECK(read_file(folder.path / "count").value() == "once\n");
}

TEST_CASE("shell options that the prolog leaves behind change nothing") {
  const Folder folder;
  auto plan = plan_of(folder, {{"true"}, {"bash", "-c", "sleep 0.1; touch done"}});
  plan.prolog.setup = {"set -euo pipefail", "IFS=,", "cd /"};
  for (int i = 0; i < 2; ++i)
    plan.ranks[static_cast<std::size_t>(i)].cpus = plan::CpuShare{.share = i, .of = 2};
  const Ran ran = run_by_hand(folder, plan);
  CHECK(ran.err.empty());
  CHECK(ran.code == 0);
  CHECK(fs::exists(folder.path / "done"));
}

TEST_CASE("a line of the prolog that fails is named, with its exit code, and no rank starts") {
  const Folder folder;
  auto plan = plan_of(folder, {{"touch", "started"}});
  plan.prolog.setup = {"true", "ls /not/there", "false"};
  Ran ran = run_by_hand(folder, plan);
  CHECK(ran.code == 2);
  CHECK(ran.err.find("dlrun: laptop: exit code 2 from environment.setup[1]: ls /not/there\n") !=
        std::string::npos);
  plan.prolog.setup = {"if then"};
  ran = run_by_hand(folder, plan);
  CHECK(ran.code != 0);
  CHECK(ran.err.find("from environment.setup[0]: if then\n") != std::string::npos);
  CHECK_FALSE(fs::exists(folder.path / "started"));
}

TEST_CASE("a line of the prolog that ends the shell is named, and no rank starts") {
  const Folder folder;
  auto plan = plan_of(folder, {{"touch", "started"}});
  const auto run_with = [&](const std::string& line) {
    plan.prolog.setup = {"true", line};
    return run_by_hand(folder, plan);
  };
  CHECK(run_with("exit 3").err == "dlrun: laptop: exit code 3 from environment.setup[1]: exit 3\n");
  CHECK(run_with("exit 3").code == 3);
  CHECK(run_with("exit 0").err == "dlrun: laptop: the shell ended within environment.setup[1]: exit 0\n");
  CHECK(run_with("exit 0").code == 69);
  CHECK(run_with("set -u; echo $nosuch").err.find("from environment.setup[1]: set -u; echo $nosuch\n") !=
        std::string::npos);
  CHECK_FALSE(fs::exists(folder.path / "started"));
  plan.prolog.setup = {"false"};
  CHECK(run_by_hand(folder, plan).err == "dlrun: laptop: exit code 1 from environment.setup[0]: false\n");
  plan.prolog.setup = {};
  plan.prolog.activate = "exit 4";
  CHECK(run_by_hand(folder, plan).err == "dlrun: laptop: exit code 4 from environment.activate: exit 4\n");
}

TEST_CASE("what a line of the prolog sets in the shell does not touch the script's own lines") {
  for (const char* line : {"set -eu", "set -C", "set -- prolog", "trap true EXIT"}) {
    const Folder folder;
    auto plan = plan_of(folder, {{"touch", "started"}});
    plan.prolog.setup = {line};
    const Ran ran = run_by_hand(folder, plan);
    CHECK(ran.err.empty());
    CHECK(ran.code == 0);
    CHECK(fs::exists(folder.path / "started"));
  }
}

TEST_CASE("a module that is asked for where there is no module command is an error") {
  const Folder folder;
  auto plan = plan_of(folder, {{"touch", "started"}});
  plan.prolog.modules = {"cuda/11.8"};
  const std::string script = write_script(folder, plan);
  CHECK(run_shell(folder, "module() { echo \"$@\" >loaded; LOADEDMODULES=$2; }; export -f module; cd " +
                              folder.path.string() + "; bash " + script)
            .code == 0);
  CHECK(read_file(folder.path / "loaded").value() == "load cuda/11.8\n");
  CHECK(run_shell(folder, "module() { return 1; }; export -f module; bash " + script)
            .err.find("exit code 1 from module load cuda/11.8") != std::string::npos);
}

TEST_CASE("sourced for its prolog, the script starts nothing and leaves the environment") {
  const Folder folder;
  auto plan = plan_of(folder, {{"touch", "started"}});
  plan.prolog.setup = {"export FROM_SETUP=1"};
  const std::string script = write_script(folder, plan);
  const Ran ran = run_shell(folder, "bash -c 'source \"$0\" prolog; echo $FROM_SETUP' " + script);
  CHECK(ran.out == "1\n");
  CHECK_FALSE(fs::exists(folder.path / "started"));
}

TEST_CASE("checks come before the ranks, and a failing one is named") {
  const Folder folder;
  auto plan = plan_of(folder, {{"touch", "started"}});
  plan.checks = {{"bash", "-c", "echo no data; exit 65"}};
  const Ran ran = run_by_hand(folder, plan);
  CHECK(ran.code == 65);
  CHECK(ran.err.find("exit code 65 from the check: bash -c 'echo no data; exit 65'") != std::string::npos);
  CHECK_FALSE(fs::exists(folder.path / "started"));
}

TEST_CASE("a rank is bound to its share of the cores") {
  const Folder folder;
  const Argv show{"grep", "Cpus_allowed_list", "/proc/self/status"};
  auto plan = plan_of(folder, {show});
  const std::string all = run_by_hand(folder, plan).out;
  for (int share = 0; share < 2; ++share) {
    plan.ranks[0].cpus = plan::CpuShare{.share = share, .of = 2};
    const Ran ran = run_by_hand(folder, plan);
    CHECK(ran.code == 0);
    CHECK(ran.err.empty());
    const bool one_core = all.find_first_of("-,") == std::string::npos;
    CHECK((ran.out != all || one_core));
  }
}

TEST_CASE("an MPI world on several nodes cannot be had by hand, and the script says so") {
  const Folder folder;
  auto plan = plan_of(folder, {{"touch", "started"}, {"touch", "started"}});
  plan.mpi = plan::MpiProtocol::pmix;
  plan.nodes.push_back({.index = NodeIndex(1), .host = HostName("other")});
  plan.ranks[1].node = NodeIndex(1);
  const Ran ran = run_by_hand(folder, plan);
  CHECK(ran.code == 69);
  CHECK(ran.err == "dlrun: the ranks of this job are on 2 nodes and connect over MPI: start it with dlrun\n");
  CHECK_FALSE(fs::exists(folder.path / "started"));
}

TEST_CASE("an MPI job on one node starts under its own launcher, or says which one is missing") {
  const Folder folder;
  auto plan = plan_of(folder, {{"bash", "-c", "touch ran.$DLRUN_RANK.$FROM_SETUP"},
                               {"bash", "-c", "touch ran.$DLRUN_RANK.$FROM_SETUP"}});
  plan.prolog.setup = {"export FROM_SETUP=yes; echo once >>" + (folder.path / "count").string()};
  plan.mpi = plan::MpiProtocol::pmi1;
  const std::string script = write_script(folder, plan);
  // A launcher of the test's own: what it is told to start, and that both ranks find their function.
  REQUIRE(make_directories(folder.path / "bin", Access::shared).has_value());
  REQUIRE(replace_file(folder.path / "bin/mpiexec.hydra",
                       "#!/bin/bash\n[[ $1 == --version ]] && { echo HYDRA build details; exit; }\n"
                       "[[ \"${*:1:4}\" == \"-bind-to none -n 2\" ]] || exit 99\nshift 4\n"
                       "PMI_RANK=0 \"$@\" && PMI_RANK=1 \"$@\"\n",
                       Durability::none)
              .has_value());
  fs::permissions(folder.path / "bin/mpiexec.hydra", fs::perms::owner_all);
  CHECK(run_shell(folder, "PATH=" + (folder.path / "bin").string() + ":$PATH bash " + script).code == 0);
  CHECK(fs::exists(folder.path / "ran.0.yes"));
  CHECK(fs::exists(folder.path / "ran.1.yes"));
  CHECK(read_file(folder.path / "count").value() == "once\n");

  REQUIRE(make_directories(folder.path / "few", Access::shared).has_value());
  for (const char* tool : {"bash", "realpath", "grep"})
    fs::create_symlink(fs::path("/usr/bin") / tool, folder.path / "few" / tool);
  const Ran ran = run_shell(folder, "PATH=" + (folder.path / "few").string() + " bash " + script);
  CHECK(ran.code == 69);
  CHECK(ran.err ==
        "dlrun: the ranks connect over MPICH or Intel MPI, and none of its launchers is here: "
        "mpiexec.hydra mpirun.mpich mpiexec\n");
}
