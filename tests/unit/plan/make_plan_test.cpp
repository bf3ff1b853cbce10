#include "src/plan/make_plan.hpp"

#include <doctest/doctest.h>

#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using plan::make_plan;
using plan::MpiProtocol;

namespace {

constexpr const char* kTwoTasks = "name: demo\ncommand: [./prog, -v]\nresources: {tasks-per-node: 2}\n";

Allocation cluster_of(std::vector<AllocatedNode> nodes) {
  Allocation out;
  out.scheduler = "slurm";
  out.nodes = std::move(nodes);
  return out;
}

}  // namespace

TEST_CASE("every rank learns its place") {
  const auto plan = make_plan(input(kTwoTasks, machine(4))).value();
  REQUIRE(plan.world_size() == 2);
  CHECK(plan.environment.at("DLRUN_SIZE") == "2");
  CHECK(plan.environment.at("DLRUN_NODES") == "1");
  CHECK(plan.environment.at("DLRUN_RUN_DIR") == "/home/ann/runs/demo-1");
  CHECK(plan.environment.at("DLRUN_JOB_ID") == "demo-1");
  CHECK(plan.environment.at("DLRUN_ATTEMPT") == "1");
  const auto& second = plan.ranks[1].environment;
  CHECK(second.at("DLRUN_RANK") == "1");
  CHECK(second.at("DLRUN_LOCAL_RANK") == "1");
  CHECK(second.at("DLRUN_LOCAL_SIZE") == "2");
  CHECK(second.at("DLRUN_NODE") == "0");
  CHECK(second.at("DLRUN_ROLE") == "worker");
  CHECK(second.at("DLRUN_TASK_INDEX") == "1");
  CHECK(plan.ranks[1].argv == Argv{"./prog", "-v"});
  CHECK(plan.working_directory == "/home/ann/jobs");
}

TEST_CASE("unlike nodes have the threads that were measured on their own processors") {
  plan::PlanInput measured = input("command: [./prog]\nresources: {tasks-per-node: 1}\n", machine(8));
  AllocatedNode other = measured.allocation.nodes[0];
  other.host = HostName("other");
  measured.allocation.nodes.push_back(other);
  measured.tuned_threads = {{8, 7}};
  measured.tuned_by_model = {{"KNL", {{8, 6}}}, {"Xeon", {{8, 5}, {4, 3}}}};
  const auto threads = [&] {
    std::string out;
    const plan::Plan plan = make_plan(measured).value();
    for (const plan::RankPlan& rank : plan.ranks) out += rank.defaults.at("OMP_NUM_THREADS") + " ";
    return out;
  };
  CHECK(threads() == "7 7 ");
  measured.cpu_models = {{measured.allocation.nodes[0].host.get(), "KNL"}, {"other", "Xeon"}};
  CHECK(threads() == "6 5 ");
  measured.cpu_models["other"] = "EPYC";  // nobody measured there
  CHECK(threads() == "6 8 ");
}

TEST_CASE("a measured number of threads is taken for the cores that it was measured with, below all else") {
  plan::PlanInput measured = input(kTwoTasks, machine(8));
  measured.tuned_threads = {{4, 3}, {8, 6}};
  CHECK(make_plan(measured).value().ranks[1].defaults.at("OMP_NUM_THREADS") == "3");
  measured.tuned_threads = {{8, 6}};
  CHECK(make_plan(measured).value().ranks[1].defaults.at("OMP_NUM_THREADS") == "4");
  measured = input(std::string(kTwoTasks) + "environment: {set: {OMP_NUM_THREADS: 2}}\n", machine(8));
  measured.tuned_threads = {{4, 3}};
  measured.spec.environment.set = {};
  measured.spec.environment.defaults = {{"OMP_NUM_THREADS", "5"}};
  CHECK(make_plan(measured).value().ranks[1].defaults.at("OMP_NUM_THREADS") == "5");
  measured.spec.environment.set = {{"OMP_NUM_THREADS", "2"}};
  CHECK_FALSE(make_plan(measured).value().ranks[1].defaults.contains("OMP_NUM_THREADS"));
}

TEST_CASE("cores are divided among the ranks, and OMP_NUM_THREADS follows unless the user set it") {
  auto plan = make_plan(input(kTwoTasks, machine(8))).value();
  CHECK(plan.ranks[1].cpus == plan::CpuShare{.share = 1, .of = 2});
  CHECK(plan.ranks[1].defaults.at("OMP_NUM_THREADS") == "4");

  plan = make_plan(input(std::string(kTwoTasks) + "environment: {set: {OMP_NUM_THREADS: 3}}\n", machine(8)))
             .value();
  CHECK_FALSE(plan.ranks[1].defaults.contains("OMP_NUM_THREADS"));
  CHECK(plan.environment.at("OMP_NUM_THREADS") == "3");

  auto in = input(kTwoTasks, machine(8));
  in.environment.set("OMP_NUM_THREADS", "1");
  CHECK_FALSE(make_plan(in)->ranks[0].defaults.contains("OMP_NUM_THREADS"));
}

TEST_CASE("more tasks than cores run unbound; --no-bind binds none") {
  auto plan = make_plan(input("command: [x]\nresources: {tasks-per-node: 16}\n", machine(2))).value();
  CHECK(plan.world_size() == 16);
  CHECK_FALSE(plan.ranks[15].cpus.has_value());
  CHECK(plan.ranks[15].defaults.at("OMP_NUM_THREADS") == "1");
  plan = make_plan(input(std::string(kTwoTasks) + "launch: {bind: false}\n", machine(8))).value();
  CHECK_FALSE(plan.ranks[0].cpus.has_value());
}

TEST_CASE("cpus-per-task is kept, or refused where the cores are not there") {
  const std::string text = "command: [x]\nresources: {tasks-per-node: 2, cpus-per-task: 2}\n";
  const auto plan = make_plan(input(text, machine(16))).value();
  CHECK(plan.ranks[1].cpus == plan::CpuShare{.share = 1, .of = 8});
  CHECK(plan.ranks[1].defaults.at("OMP_NUM_THREADS") == "2");
  CHECK(error_of(make_plan(input(text, machine(3)))) ==
        "job.yaml:2:47: 2 tasks of 2 cores need 4 cores, and laptop has 3\n"
        "  hint: request fewer cores per task, or remove cpus-per-task to divide the cores of the node");
}

TEST_CASE("GPUs come from the node's own list") {
  const auto nodes = cluster_of({node("g1", 8, {{"0", "1", "2", "3"}}), node("g2", 8, {{"GPU-a", "GPU-b"}})});
  const auto plan = make_plan(input("command: [x]\nresources: {gpus-per-node: 2}\n", nodes)).value();
  REQUIRE(plan.world_size() == 4);  // a task a GPU
  CHECK(plan.ranks[1].environment.at("CUDA_VISIBLE_DEVICES") == "1");
  CHECK(plan.ranks[2].environment.at("CUDA_VISIBLE_DEVICES") == "GPU-a");
  CHECK(plan.ranks[3].gpus == std::vector<std::string>{"GPU-b"});
  CHECK(plan.ranks[3].defaults.at("CUDA_DEVICE_ORDER") == "PCI_BUS_ID");
  CHECK(plan.ranks[3].node == NodeIndex(1));
  CHECK(plan.ranks[3].local_rank == LocalRank(1));
}

TEST_CASE("gpus-per-node: 0 hides the GPUs of every vendor; no word about GPUs leaves them alone") {
  auto plan = make_plan(input("command: [x]\nresources: {gpus-per-node: 0}\n", machine(2, {{"0"}}))).value();
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"})
    CHECK(plan.ranks[0].environment.at(name).empty());
  CHECK(plan.ranks[0].environment.at("ZE_AFFINITY_MASK") == "1023");  // empty would show all
  plan = make_plan(input("command: [x]\n", machine(2, {{"0"}}))).value();
  CHECK_FALSE(plan.ranks[0].environment.contains("CUDA_VISIBLE_DEVICES"));
  CHECK_FALSE(plan.ranks[0].gpus.has_value());
}

TEST_CASE("never smaller: too few nodes, GPUs or unequal shares are errors that count both sides") {
  CHECK(error_of(make_plan(input("command: [x]\nresources: {nodes: 2}\n", machine(2)))) ==
        "job.yaml:2:20: the job asks for 2 nodes and this machine is one: laptop\n"
        "  hint: run it inside a batch job of that size, or with --nodes 1");
  CHECK(error_of(make_plan(
            input("command: [x]\nresources: {nodes: 3}\n", cluster_of({node("c1", 1), node("c2", 1)})))) ==
        "job.yaml:2:20: the job asks for 3 nodes and the allocation has 2: c1, c2\n"
        "  hint: ask the scheduler for 3 nodes, or run with --nodes 2");
  CHECK(error_of(make_plan(
            input("command: [x]\nresources: {gpus-per-node: 2}\n",
                  cluster_of({node("c1", 4, {{"0", "1"}}), node("c2", 4, {{"3"}}), node("c3", 4)})))) ==
        "job.yaml:2:28: the job asks for 2 GPUs per node, but 2 of 3 nodes do not have them\n"
        "  c2 has 1 GPU: 3\n"
        "  c3: its GPUs are unknown\n"
        "  hint: list the GPUs of the nodes, as in --hosts 'c3 gpus=2', or request fewer");
  CHECK(error_of(make_plan(input("command: [x]\nresources: {gpus-per-node: 2, tasks-per-node: 4}\n",
                                 machine(8, {{"0", "1"}})))) ==
        "job.yaml:2:47: 2 GPUs per node cannot be divided equally among 4 tasks\n"
        "  hint: use --tasks-per-node 2, one task per GPU");
  CHECK(make_plan(input("command: [x]\nresources: {nodes: 2}\n", machine(2))).error().kind ==
        ErrorKind::allocation);
}

TEST_CASE("a further attempt tells what became of the one before, in one line of text") {
  plan::PlanInput again = input("command: [x]\n", machine(2));
  CHECK_FALSE(make_plan(again)->environment.contains("DLRUN_PREVIOUS_END"));
  again.previous = plan::PreviousAttempt{.ranks = 8, .reason = "n2: lost\nmore", .left_out = {"n2", "n5"}};
  const auto environment = make_plan(again)->environment;
  CHECK(environment.at("DLRUN_PREVIOUS_SIZE") == "8");
  CHECK(environment.at("DLRUN_PREVIOUS_END") == "n2: lost");
  CHECK(environment.at("DLRUN_LEFT_OUT") == "n2,n5");
  again.previous->reason = "\xff";
  CHECK(make_plan(again)->environment.at("DLRUN_PREVIOUS_END") == "the attempt before failed");
}

TEST_CASE("a range of nodes: all of the allocation between its ends, and never fewer") {
  const std::string text = "command: [x]\nresources: {nodes: 2-3}\n";
  const auto on = [&](int count) {
    std::vector<AllocatedNode> nodes;
    for (int i = 1; i <= count; ++i) nodes.push_back(node(fmt::format("c{}", i), 1));
    return make_plan(input(text, cluster_of(std::move(nodes))));
  };
  CHECK(on(2)->nodes.size() == 2);
  CHECK(on(3)->nodes.size() == 3);
  CHECK(on(5)->nodes.size() == 3);
  CHECK(error_of(on(1)) ==
        "job.yaml:2:20: the job asks for 2 to 3 nodes and the allocation has one: c1\n"
        "  hint: ask the scheduler for 2 to 3 nodes, or run with --nodes 1");
}

TEST_CASE("fewer nodes than the allocation has: the first ones, in its order") {
  const auto plan = make_plan(input("command: [x]\nresources: {nodes: 2}\n",
                                    cluster_of({node("z", 1), node("a", 1), node("m", 1)})))
                        .value();
  REQUIRE(plan.nodes.size() == 2);
  CHECK(plan.nodes[0].host.get() == "z");
  CHECK(plan.nodes[1].host.get() == "a");
  CHECK(plan::node_script_name(plan.nodes[1]) == "nodes/0002-a.sh");
}

TEST_CASE("what this version cannot do is refused, never ignored") {
  CHECK(error_of(make_plan(input("command: [x]\nroles: {ps: {count: 2}}\n", machine(2)))) ==
        "job.yaml:2:13: framework plain has no roles, and the job names 'ps'\n"
        "  hint: use resources.tasks-per-node for the number of ranks");
  CHECK(error_of(make_plan(input("command: [x]\nlaunch: {mpi: native}\n", machine(2)))) ==
        "job.yaml:2:15: launch.mpi: native needs the launcher of a scheduler, and this machine has none\n"
        "  hint: use auto, pmix or pmi1");
  plan::PlanInput by_adapter = input("command: [x]\n", machine(2));
  by_adapter.adapter.mpi = "native", by_adapter.adapter.source = "/here/cray.yaml";
  CHECK(error_of(make_plan(by_adapter)) ==
        "/here/cray.yaml: mpi: native needs the launcher of a scheduler, and this machine has none\n"
        "  hint: use launch.mpi: pmix or pmi1, or run it in a job of a scheduler");
  CHECK(error_of(make_plan(input(
            "command: [x]\nresources: {gpus-per-node: 1}\nenvironment: {set: {CUDA_VISIBLE_DEVICES: 1}}\n",
            machine(2, {{"0"}})))) ==
        "job.yaml:3:43: CUDA_VISIBLE_DEVICES is set here, and gpus-per-node makes dlrun set it\n"
        "  hint: remove one of the two");
}

TEST_CASE("the adapter's variables, prefix, files and checks are evaluated; the user's own words are not") {
  const auto framework = adapter(
      "name: torch\nsummary: a test\n"
      "env: {MASTER_ADDR: '{{rendezvous.host}}', RANK: '{{rank.index}}', NOTHING: {if: rank.gpus, value: "
      "x},\n"
      "      HOSTS: {json: node.hosts}, MINE: adapter}\n"
      "prefix: [wrap, '--id={{rank.local}}']\n"
      "files: {hosts: '{{node.hosts}}'}\nchecks: [[test, '{{job.name}}']]\n");
  const auto plan =
      make_plan(input("name: demo\ncommand: [echo, '{{rank.index}}']\nresources: {tasks-per-node: 2}\n"
                      "environment: {set: {MINE: user}}\n",
                      machine(2), framework))
          .value();
  CHECK(plan.environment.at("MASTER_ADDR") == "127.0.0.1");
  CHECK(plan.environment.at("HOSTS") == R"(["laptop"])");
  CHECK(plan.environment.at("MINE") == "user");
  CHECK(plan.ranks[1].environment.at("RANK") == "1");
  CHECK_FALSE(plan.ranks[1].environment.contains("NOTHING"));
  CHECK(plan.ranks[1].argv == Argv{"wrap", "--id=1", "echo", "{{rank.index}}"});
  CHECK(plan.files.at("hosts") == "laptop");
  CHECK(plan.checks == std::vector<Argv>{{"test", "demo"}});
}

TEST_CASE("MPI: the job's word, else the adapter's, else what the program is linked to") {
  const auto framework = adapter("name: mpi\nsummary: a test\nmpi: auto\n");
  auto in = input("command: [x]\n", machine(2), framework);
  in.detected_mpi = MpiProtocol::pmi1;
  CHECK(make_plan(in)->mpi == MpiProtocol::pmi1);
  in.detected_mpi.reset();
  CHECK(make_plan(in).error().kind == ErrorKind::internal);
  in = input("command: [x]\nlaunch: {mpi: pmix}\n", machine(2), framework);
  CHECK(make_plan(in)->mpi == MpiProtocol::pmix);
  CHECK(make_plan(input("command: [x]\n", machine(2)))->mpi == MpiProtocol::none);
}

TEST_CASE("the prolog: modules, activation and the user's lines, in this order") {
  const auto plan =
      make_plan(input("command: [x]\nenvironment: {modules: [cuda/11.8], activate: 'venv:my env', "
                      "setup: [ulimit -l unlimited]}\n",
                      machine(2)))
          .value();
  CHECK(plan.prolog.modules == std::vector<std::string>{"cuda/11.8"});
  CHECK(plan.prolog.activate == "source '/home/ann/jobs/my env/bin/activate'");
  CHECK(plan.prolog.setup == std::vector<std::string>{"ulimit -l unlimited"});
}

TEST_CASE("words that are not UTF-8 are refused: they would arrive changed") {
  auto in = input("command: [x]\n", machine(2));
  in.spec.command.push_back("caf\xe9");
  CHECK(error_of(make_plan(in)) == "word 2 of the command is not UTF-8 text: \"caf\xef\xbf\xbd\"");
}

TEST_CASE("a NUL, which YAML can write, is refused: a program's words end there") {
  CHECK(error_of(make_plan(input("command: [x, \"a\\0b\"]\n", machine(2)))) ==
        "word 2 of the command has a NUL character, which no argument may have");
  CHECK(error_of(make_plan(input("command: [x]\nenvironment: {set: {A: \"\\0\"}}\n", machine(2)))) ==
        "environment.set.A has a NUL character, which no argument may have");
}

TEST_CASE("in Slurm, ranks have their own place in Slurm's words; an adapter's own launcher has not") {
  const Allocation allocation = cluster_of({node("n1", 4), node("n2", 4)});
  const auto plan = make_plan(input("command: [x]\nresources: {tasks-per-node: 2}\n", allocation)).value();
  CHECK(plan.environment.at("SLURM_NTASKS") == "4");
  CHECK(plan.environment.at("SLURM_STEP_NUM_TASKS") == "4");
  CHECK(plan.environment.at("SLURM_NNODES") == "2");
  CHECK(plan.environment.at("SLURM_NTASKS_PER_NODE") == "2");
  CHECK(plan.ranks[3].environment.at("SLURM_PROCID") == "3");
  CHECK(plan.ranks[3].environment.at("SLURM_LOCALID") == "1");
  CHECK(plan.ranks[3].environment.at("SLURM_NODEID") == "1");
  const auto theirs = make_plan(input("command: [x]\nresources: {tasks-per-node: 2}\n", allocation,
                                      adapter("name: a\nsummary: s\nprocess: per-job\n")))
                          .value();
  CHECK_FALSE(theirs.environment.contains("SLURM_NTASKS"));
  CHECK_FALSE(theirs.ranks[0].environment.contains("SLURM_PROCID"));
  CHECK_FALSE(make_plan(input("command: [x]\n", machine(2)))->environment.contains("SLURM_NTASKS"));
  const auto users =
      make_plan(input("command: [x]\nenvironment: {set: {SLURM_PROCID: mine}}\n", allocation)).value();
  CHECK(users.environment.at("SLURM_PROCID") == "mine");
  CHECK_FALSE(users.ranks[0].environment.contains("SLURM_PROCID"));
}

TEST_CASE("a wrap comes before the command of the ranks that it names, or of all") {
  const std::string two = "command: [x, y]\nresources: {tasks-per-node: 2}\n";
  const auto one =
      make_plan(input(two + "launch: {wrap: {command: [perf, stat, --], ranks: [1]}}\n", machine(2)));
  REQUIRE_MESSAGE(one.has_value(), error_of(one));
  CHECK(one->ranks[0].argv == Argv{"x", "y"});
  CHECK(one->ranks[1].argv == Argv{"perf", "stat", "--", "x", "y"});
  const auto all = make_plan(input(two + "launch: {wrap: {command: nice}}\n", machine(2)));
  CHECK(all->ranks[0].argv == Argv{"nice", "x", "y"});
  CHECK(all->ranks[1].argv == all->ranks[0].argv);
  CHECK(error_of(make_plan(input(two + "launch: {wrap: {command: nice, ranks: [0, 2]}}\n", machine(2))))
            .find("launch.wrap.ranks names rank 2, and the job has 2 ranks") != std::string::npos);
}

TEST_CASE("a plan of many ranks takes no time to speak of, and its text grows with the ranks alone") {
  Allocation allocation = cluster_of({});
  for (int i = 0; i < 1000; ++i) allocation.nodes.push_back(node(fmt::format("n{:04}", i), 64));
  const auto plan = make_plan(input("command: [x]\nresources: {tasks-per-node: 8}\n", allocation)).value();
  CHECK(plan.world_size() == 8000);
  CHECK(to_text(to_json(plan)).size() < 8000U * 500);
}

TEST_CASE("what no program can be started with is refused by name and size") {
  auto in = input("command: [x]\n", machine(2));
  in.spec.command.push_back(std::string(131072, 'x'));
  CHECK(error_of(make_plan(in)) ==
        "word 2 of the command of rank 0 (worker 0) has 131072 bytes, and the system passes at most 131071 "
        "to "
        "a program\n  hint: pass long lists in a file");
  in.spec.command.back().pop_back();
  CHECK(make_plan(in).has_value());
  Allocation many = cluster_of({});
  for (int i = 0; i < 9999; ++i) many.nodes.push_back(node(fmt::format("a-node-called-{:06}", i), 1));
  const auto hosts = adapter("name: a\nsummary: s\nenv: {HOSTS: {json: node.hosts}}\n");
  CHECK(error_of(make_plan(input("command: [x]\n", many, hosts)))
            .starts_with("variable HOSTS of the job has 229984 bytes"));
}

TEST_CASE("the plan is pure: the same input gives the same plan") {
  const auto in = input(kTwoTasks, machine(8));
  CHECK(to_json(*make_plan(in)) == to_json(*make_plan(in)));
}
