#include "src/plan/adapter.hpp"

#include <array>
#include <cstdlib>
#include <set>

#include <doctest/doctest.h>

#include "src/base/file.hpp"
#include "tests/unit/folder.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
namespace fs = std::filesystem;

namespace {

std::string refused(const std::string& rest) {
  return error_of(plan::parse_adapter("name: a\nsummary: s\n" + rest, "a.yaml"));
}

}  // namespace

TEST_CASE("every adapter that comes with dlrun loads, and says what it is") {
  const auto all = plan::all_adapters(plan::adapter_path({}, "", TEST_SOURCE_DIR));
  REQUIRE_MESSAGE(all.has_value(), error_of(all));
  std::set<std::string> names;
  for (const plan::Adapter& adapter : *all) {
    names.insert(adapter.name);
    CHECK_FALSE(adapter.summary.empty());
  }
  for (const char* name : {"builtin", "mpi", "plain"}) CHECK(names.contains(name));
}

TEST_CASE("mistakes are found when the adapter is loaded, with place and nearest name") {
  CHECK(refused("env: {A: '{{rank.indx}}'}\n") ==
        "a.yaml:3:10: env.A: fact 'rank.indx' is not known\n  hint: did you mean 'rank.index'?");
  CHECK(refused("env: {A: {if: rank.gpu, value: x}}\n") ==
        "a.yaml:3:15: env.A.if: fact 'rank.gpu' is not known\n  hint: did you mean 'rank.gpus'?");
  CHECK(refused("env: {A: {json: zebra}}\n")
            .starts_with("a.yaml:3:17: env.A.json: fact 'zebra' is not known\n"));
  CHECK(refused("env: {A: {velue: x}}\n") ==
        "a.yaml:3:11: unknown key 'velue' in 'env.A'\n  hint: did you mean 'value'?");
  CHECK(refused("env: {A: {value: x, json: node.hosts}}\n") ==
        "a.yaml:3:10: env.A needs either 'value' or 'json'");
  CHECK(refused("env: {A: '{{rank.index'}\n") == "a.yaml:3:10: env.A: '{{' is not closed: {{rank.index");
  CHECK(refused("env: {A-B: x}\n") == "a.yaml:3:12: 'A-B' is not a valid variable name");
  CHECK(refused("env: {DLRUN_RANK: x}\n") == "a.yaml:3:19: dlrun itself sets DLRUN_RANK for every rank");
  CHECK(refused("files: {hosts: '{{rank.index}}'}\n") ==
        "a.yaml:3:16: files.hosts: 'rank.index' differs between ranks, and this is used once per job");
  CHECK(refused("checks: [[test, '{{rank.index}}']]\n") ==
        "a.yaml:3:17: checks: 'rank.index' differs between ranks, and this is used once per job");
  CHECK(refused("checks: [[]]\n") == "a.yaml:3:10: checks: an empty command");
  CHECK(refused("prefix: run\n") == "a.yaml:3:9: prefix must be a list of words");
  CHECK(refused("process: per-rnak\n") ==
        "a.yaml:3:10: process: 'per-rnak' is not known\n  hint: did you mean 'per-rank'?");
  CHECK(refused("mpi: openmpi\n").starts_with("a.yaml:3:6: mpi: 'openmpi' is not known"));
  CHECK(refused("evn: {}\n") == "a.yaml:3:1: unknown key 'evn'\n  hint: did you mean 'env'?");
  CHECK(error_of(plan::parse_adapter("name: a\n", "a.yaml")) == "a.yaml:1:1: 'summary' is missing");
}

TEST_CASE("files of an adapter stay below the run directory") {
  for (const char* name : {"../x", "/etc/passwd", "a/../../x", "a/", ".", "./x", "''", "a//b"})
    CHECK_MESSAGE(
        refused(fmt::format("files: {{{}: text}}\n", name)).find("is not a name below the run directory") !=
            std::string::npos,
        name);
  CHECK(refused("files: {hosts/mpi.txt: text}\n") == "no error");
}

TEST_CASE("files of an adapter do not overwrite dlrun's own") {
  for (const char* name : {"plan.json", "spec.json", "allocation.json", "record.json", "events.jsonl",
                           "nodes", "nodes/0001-vm.sh", "logs/x", "attempts/1/plan.json",
                           "checkpoint-request", "agent-token-2000", "dlrun-copy.sh", "plan.json/x"})
    CHECK(refused(fmt::format("files: {{{}: text}}\n", name)) ==
          fmt::format("a.yaml:3:{}: files: dlrun itself writes '{}' in the run directory\n"
                      "  hint: choose another name",
                      11 + std::string_view(name).size(), name));
  CHECK(refused("files: {my-plan.json: text, logs.txt: text}\n") == "no error");
}

TEST_CASE("a fact without a value is an error at the place that names it, unless 'if' asks first") {
  const auto framework = adapter("name: a\nsummary: s\nenv: {C: '{{checkpoint.dir}}'}\n");
  CHECK(error_of(plan::make_plan(input("command: [x]\n", machine(2), framework))) ==
        "frameworks/test.yaml:3:10: 'checkpoint.dir' has no value in this job\n"
        "  hint: use the form {if: checkpoint.dir, value: ...}");
  CHECK(plan::make_plan(input("command: [x]\ncheckpoint: {dir: /c}\n", machine(2), framework))
            ->environment.at("C") == "/c");
}

TEST_CASE("adapters: the first folder that has one wins; what is not known names the nearest") {
  const Folder folder;
  const std::string text = "name: plain\nsummary: ";
  folder.write("mine/plain.yaml", text + "mine\n");
  folder.write("user/frameworks/plain.yaml", text + "the user's\n");
  folder.write("user/frameworks/own.yaml", "name: own\nsummary: own\n");
  folder.write("user/frameworks/liar.yaml", "name: other\nsummary: s\n");
  folder.write("data/frameworks/plain.yaml", text + "installed\n");
  folder.write("data/frameworks/notes.txt", "no adapter");
  const auto path = plan::adapter_path(folder.path / "mine", folder.path / "user", folder.path / "data");
  CHECK(plan::find_adapter(path, "plain")->summary == "mine");
  CHECK(plan::find_adapter(plan::adapter_path({}, folder.path / "user", folder.path / "data"), "plain")
            ->summary == "the user's");
  CHECK(plan::find_adapter(path, "own").has_value());
  CHECK(error_of(plan::find_adapter(path, "plani", "job.yaml:1:12")) ==
        "job.yaml:1:12: framework 'plani' is not known\n  hint: did you mean 'plain'?");
  CHECK(error_of(plan::find_adapter(path, "liar"))
            .find("the adapter has the name 'other' and its file 'liar'") != std::string::npos);
  CHECK(error_of(plan::find_adapter(plan::adapter_path({}, "", "/not/there"), "plain")) ==
        "framework 'plain' is not known\n  hint: no adapters in /not/there/frameworks");
}

TEST_CASE("an adapter that extends another says only what differs") {
  const auto parent =
      yaml::parse("name: a\nsummary: first\nenv: {A: x, B: y}\nroles: {w: {port: 2000}}\n", "a.yaml");
  const auto child = yaml::parse("name: b\nextends: a\nenv: {B: z}\n", "b.yaml");
  const auto both = plan::parse_adapter(plan::extend_adapter(*parent, *child), "b.yaml").value();
  CHECK(both.name == "b");
  CHECK(both.summary == "first");
  CHECK(both.variables.size() == 2);
  CHECK(both.variables[1].text->evaluate({}).value() == "z");
  CHECK(both.roles.front().port == 2000);
}

TEST_CASE("adapters that extend each other in a cycle, or that do not exist, are named") {
  const Folder data;
  data.write("frameworks/a.yaml", "name: a\nextends: b\n");
  data.write("frameworks/b.yaml", "name: b\nextends: c\n");
  data.write("frameworks/c.yaml", "name: c\nextends: a\n");
  data.write("frameworks/self.yaml", "name: self\nextends: self\n");
  data.write("frameworks/orphan.yaml", "name: orphan\nextends: d\n");
  const plan::AdapterPath path = plan::adapter_path({}, "", data.path);
  const auto refusal = [&](const std::string& name) { return error_of(plan::find_adapter(path, name)); };
  CHECK(refusal("a").find("c.yaml:2:10: adapters extend each other in a cycle: a -> b -> c -> a") !=
        std::string::npos);
  CHECK(refusal("self").find("in a cycle: self -> self") != std::string::npos);
  CHECK(refusal("orphan").find("orphan.yaml:2:10: framework 'd' is not known") != std::string::npos);
}

TEST_CASE("facts of roles are known for the roles that the adapter has") {
  CHECK(error_of(plan::parse_adapter(
            "name: a\nsummary: s\nroles: {ps: {}}\nprefix: [\"{{role.pss.hosts}}\"]\n", "a.yaml")) ==
        "a.yaml:4:10: fact 'role.pss.hosts': this framework has no role 'pss'\n  hint: did you mean 'ps'?");
}

TEST_CASE(
    "what a framework needs becomes probes of every node, its Python modules where the command is Python") {
  const auto needy = adapter(
      "name: a\nsummary: s\nneeds: {programs: [torchrun], variables: [X], modules: [torch, numpy]}\n");
  const auto probes_of = [&](const std::string& command) {
    return plan::make_plan(input("command: " + command + "\n", machine(2), needy))->prolog.needs;
  };
  const auto probes = probes_of("[/opt/bin/python3.9, train.py]");
  REQUIRE(probes.size() == 3);
  CHECK(probes[0].back() == "torchrun");
  CHECK(probes[1].back() == "X");
  CHECK(probes[2].front() == "/opt/bin/python3.9");
  CHECK(std::vector(probes[2].end() - 3, probes[2].end()) == std::vector<std::string>{"a", "torch", "numpy"});
  CHECK(probes_of("[./train.sh]").size() == 2);
  CHECK(refused("needs: {variables: [\"X;rm\"]}\n").find("needs.variables: 'X;rm' is not a name") !=
        std::string::npos);
  CHECK(refused("needs: {module: [x]}\n").find("did you mean 'modules'") != std::string::npos);
  CHECK(refused("process: per-job\nroles: {w: {}}\n").find("roles go with process: per-rank") !=
        std::string::npos);
}

TEST_CASE("a framework that takes one number for all nodes refuses nodes that differ") {
  const auto even = adapter("name: a\nsummary: s\nneeds: {facts: [tasks.per-node]}\nroles: {w: {}}\n");
  auto two = machine(2);
  two.nodes.push_back(node("second", 2));
  const std::string job_text = "command: [x]\nroles: {w: {count: ";
  CHECK(plan::make_plan(input(job_text + "2}}\n", two, even)).has_value());
  CHECK(error_of(plan::make_plan(input(job_text + "3}}\n", two, even)))
            .starts_with("frameworks/test.yaml:3:8: framework a needs 'tasks.per-node', which has no value "
                         "in this job"));
}

TEST_CASE("words can depend on whether a fact has a value") {
  const auto framework = adapter(
      "name: a\nsummary: s\nprefix: [run, {value: '--gpus={{rank.gpu-count}}', if: rank.gpu-count},\n"
      "  {value: --cpu, unless: rank.gpu-count}]\n");
  CHECK(plan::make_plan(input("command: [x]\n", machine(2), framework))->ranks[0].argv ==
        Argv{"run", "--cpu", "x"});
  const auto gpus = machine(2, std::vector<std::string>{"0", "1"});
  CHECK(plan::make_plan(
            input("command: [x]\nresources: {gpus-per-node: 2, tasks-per-node: 1}\n", gpus, framework))
            ->ranks[0]
            .argv == Argv{"run", "--gpus=2", "x"});
  CHECK(refused("prefix: [{value: x}]\n").find("needs 'value' and either 'if' or 'unless'") !=
        std::string::npos);
}

TEST_CASE("a role can have a command and variables of its own, and serve the others") {
  const auto framework = adapter(
      "name: a\nsummary: s\nenv: {A: all}\nprefix: [run]\nroles:\n  client: {count: 1}\n"
      "  server: {count: 1, port: 9000, service: true, command: [serve, '{{rank.port}}'], env: {A: "
      "'{{rank.role}}'}}\n");
  const auto plan = plan::make_plan(input("command: [x]\n", machine(2), framework)).value();
  CHECK(plan.ranks[0].argv == Argv{"run", "x"});
  CHECK_FALSE(plan.ranks[0].service);
  CHECK(plan.environment.at("A") == "all");
  CHECK(plan.ranks[1].argv == Argv{"serve", "9000"});
  CHECK(plan.ranks[1].environment.at("A") == "server");
  CHECK(plan.ranks[1].service);
  CHECK(refused("roles: {w: {command: ['{{rank.indx}}']}}\n")
            .find("roles.w.command: fact 'rank.indx' is not known") != std::string::npos);
}

TEST_CASE("libraries are told the interface in their own syntax, where there is more than one node") {
  const auto framework = adapter("name: a\nsummary: s\ninterfaces: [nccl, gloo]\n");
  auto two = machine(2);
  CHECK(plan::make_plan(input("command: [x]\n", two, framework))->interface_variables.empty());
  two.nodes.push_back(node("second", 2));
  CHECK(plan::make_plan(input("command: [x]\n", two, framework))->interface_variables ==
        plan::EnvironmentChanges{{"GLOO_SOCKET_IFNAME", ""}, {"NCCL_SOCKET_IFNAME", "="}});
  CHECK(refused("interfaces: [ncll]\n").find("did you mean 'nccl'") != std::string::npos);
}

TEST_CASE("cores for threads that communicate are not for OpenMP") {
  const auto threads = [](int reserve, int cores) {
    const auto framework = adapter(fmt::format(
        "name: a\nsummary: s\nreserve-cpus: {}\nenv: {{W: '{{{{rank.reserved-cpus}}}}'}}\n", reserve));
    const auto plan = plan::make_plan(input("command: [x]\n", machine(cores), framework)).value();
    return plan.ranks[0].defaults.at("OMP_NUM_THREADS") + "+" + plan.ranks[0].environment.at("W");
  };
  CHECK(threads(2, 8) == "6+2");
  CHECK(threads(2, 2) == "1+1");
  CHECK(threads(2, 1) == "1+0");
}

TEST_CASE("an adapter that has the former name of an MPI mode works, with a warning") {
  const auto old = plan::parse_adapter("name: a\nsummary: s\nmpi: engine\n", "a.yaml");
  REQUIRE_MESSAGE(old.has_value(), error_of(old));
  CHECK(old->mpi == "native");
  REQUIRE(old->warnings.size() == 1);
  CHECK(old->warnings[0].ends_with("is now called native"));
  CHECK(plan::parse_adapter("name: a\nsummary: s\nmpi: native\n", "a.yaml")->warnings.empty());
}
