#include "src/plan/job_spec.hpp"

#include <doctest/doctest.h>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/plan/config_layers.hpp"
#include "src/plan/other_keys.hpp"
#include "src/plan/placement.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

TEST_CASE("every key of a job file is read") {
  const auto spec = job(R"(name: flowers
framework: mpi
resources: {nodes: 2, gpus-per-node: 8, tasks-per-node: 8, cpus-per-task: 4, walltime: "8:00:00", queue: gpu,
            account: abc, extra: ["--exclusive"]}
roles:
  ps:     {count: 2, placement: dedicated}
  worker: {per-node: 8, gpus: 1}
command: [python, train.py, --batch-size, 32]
environment:
  modules: [cuda/11.8, anaconda/3]
  activate: conda:tensorflow
  setup: [ulimit -l unlimited]
  set: {OMP_NUM_THREADS: 4}
  container: {image: tf.sif, engine: podman, mounts: [/scratch]}
launch: {via: local, fan-out: 16, start-timeout: 60s, grace: 5s, mpi: pmi1, bind: false,
         ssh: {host-keys: accept-new, user: ann, port: 2222, connect-timeout: 3s}}
checkpoint: {dir: ckpt, every: 200steps, keep: 5, request: [file, signal:TERM], lead: 5min}
chain: {max-links: 20, retries: 3, mode: requeue, mtbf: 30d}
)")
                        .value();
  CHECK(spec.name == "flowers");
  CHECK(spec.framework == "mpi");
  CHECK(spec.resources.nodes == 2);
  CHECK(spec.resources.gpus_per_node == 8);
  CHECK(spec.resources.tasks_per_node == 8);
  CHECK(spec.resources.cpus_per_task == 4);
  CHECK(spec.resources.walltime->count() == 8 * 3600);
  CHECK(spec.resources.queue == "gpu");
  CHECK(spec.resources.account == "abc");
  CHECK(spec.resources.extra == std::vector<std::string>{"--exclusive"});
  REQUIRE(spec.roles.size() == 2);
  CHECK(spec.roles[0].name == "ps");
  CHECK(spec.roles[0].count == 2);
  CHECK(spec.roles[0].placement == plan::Placement::dedicated);
  CHECK(spec.roles[1].per_node == 8);
  CHECK(spec.roles[1].gpus == 1);
  CHECK(spec.command == Argv{"python", "train.py", "--batch-size", "32"});
  CHECK(spec.environment.modules.size() == 2);
  CHECK(spec.environment.activate == "conda:tensorflow");
  CHECK(spec.environment.setup == std::vector<std::string>{"ulimit -l unlimited"});
  CHECK(spec.environment.set.at("OMP_NUM_THREADS") == "4");
  CHECK(spec.environment.container->engine == "podman");
  CHECK(spec.environment.container->mounts == std::vector<std::string>{"/scratch"});
  CHECK(spec.launch.via == "local");
  CHECK(spec.launch.fan_out == 16);
  CHECK(spec.launch.start_timeout.count() == 60);
  CHECK(spec.launch.grace.count() == 5);
  CHECK(spec.launch.mpi == "pmi1");
  CHECK_FALSE(spec.launch.bind);
  CHECK(spec.launch.ssh.host_keys == plan::HostKeys::accept_new);
  CHECK(spec.launch.ssh.user == "ann");
  CHECK(spec.launch.ssh.port == Port(2222));
  CHECK(spec.launch.ssh.connect_timeout.count() == 3);
  CHECK(spec.checkpoint.dir == "/home/ann/jobs/ckpt");
  CHECK(spec.checkpoint.every == "200steps");
  CHECK(spec.checkpoint.keep == 5);
  CHECK(spec.checkpoint.request == std::vector<std::string>{"file", "signal:TERM"});
  CHECK(spec.checkpoint.lead == "5min");
  CHECK(spec.chain.max_links == 20);
  CHECK(spec.chain.retries == 3);
  CHECK(spec.chain.mode == "requeue");
  CHECK(spec.chain.mtbf == Seconds(30 * 86400));
}

TEST_CASE("a command alone is a job: of the plain framework, named after the program") {
  const auto spec = job("command: [./bin/my-prog.sh, x]\n").value();
  CHECK(spec.framework == "plain");
  CHECK(spec.name == "my-prog.sh");
  CHECK(job("command: ['+++']\n")->name == "job");
}

TEST_CASE("the builtin framework keeps its train section as it stands, with places") {
  const auto spec = job("framework: builtin\ntrain:\n  model: x\n  unknown: {to: us}\n").value();
  CHECK(spec.name == "builtin");
  REQUIRE(spec.train.find("unknown") != nullptr);
  CHECK(spec.train.find("unknown")->source == "job.yaml:4:12");
}

TEST_CASE("relative paths are relative to the job file") {
  CHECK(job("command: [x]\ncheckpoint: {dir: ../ckpt}\n")->checkpoint.dir == "/home/ann/ckpt");
  CHECK(job("command: [x]\ncheckpoint: {dir: /scratch/ckpt}\n")->checkpoint.dir == "/scratch/ckpt");
  CHECK(job("command: [x]\nenvironment: {activate: 'venv:env'}\n")->environment.activate ==
        "venv:/home/ann/jobs/env");
}

TEST_CASE("tasks per node: as set, else the GPUs per node, else one") {
  const auto tasks = [](const std::string& resources) {
    return plan::tasks_per_node(job("command: [x]\nresources: " + resources + "\n")->resources);
  };
  CHECK(tasks("{}") == 1);
  CHECK(tasks("{gpus-per-node: 4}") == 4);
  CHECK(tasks("{gpus-per-node: 0}") == 1);
  CHECK(tasks("{gpus-per-node: 4, tasks-per-node: 2}") == 2);
}

TEST_CASE("intervals of checkpoints: time, steps, epochs") {
  for (const char* good :
       {"10min", "90s", "200steps", "1step", "1epoch", "2epochs", "0.5epochs", "200 steps"})
    CHECK_MESSAGE(job(fmt::format("command: [x]\ncheckpoint: {{every: {}}}\n", good)).has_value(), good);
  for (const char* bad : {"10", "0s", "0steps", "-1steps", "steps", "1.5steps", "0epochs", "ten steps"})
    CHECK_MESSAGE(!job(fmt::format("command: [x]\ncheckpoint: {{every: {}}}\n", bad)).has_value(), bad);
}

TEST_CASE("places of values, for errors of later steps") {
  const auto spec = job("command: [x]\nresources: {nodes: 2}\n").value();
  CHECK(plan::place_of(spec, "resources.nodes") == "job.yaml:2:20");
  CHECK(plan::place_of(spec, "resources.queue").empty());
  CHECK(plan::place_of(spec, "").empty());
}

TEST_CASE("a command that is a map is not replaced by the one behind --") {
  auto tree = yaml::parse("{}", "job.yaml").value();
  REQUIRE(plan::apply_override(tree, {.path = "command.0", .value = "ls", .source = "--set"}).has_value());
  const auto added = plan::append_words(tree, {"true"}, "the command line");
  REQUIRE_FALSE(added.has_value());
  CHECK(added.error().text().find("command is a map") != std::string::npos);
}

TEST_CASE("layers: later ones win, and every leaf says where it came from") {
  using plan::Override;
  const auto site = yaml::parse("launch: {fan-out: 8, grace: 3s}\n", "site.yaml").value();
  const auto file = yaml::parse("command: [x]\nlaunch: {grace: 5s}\n", "job.yaml").value();
  auto tree = plan::merge_layers({plan::default_layer(), site, file}).value();
  REQUIRE(
      plan::apply_override(tree, {.path = "resources.nodes", .value = "2", .source = "--nodes"}).has_value());
  REQUIRE(plan::append_words(tree, {"-v", "{a: b}"}, "the command line").has_value());
  const auto spec = plan::read_job_spec(tree, "/").value();
  CHECK(spec.launch.fan_out == 8);
  CHECK(spec.launch.grace.count() == 5);
  CHECK(spec.resources.nodes == 2);
  CHECK(spec.command == Argv{"x", "-v", "{a: b}"});
  std::map<std::string, std::string> sources;
  for (const auto& leaf : plan::explain(tree)) sources[leaf.path] = leaf.value + " from " + leaf.source;
  CHECK(sources["launch.fan-out"] == "8 from site.yaml:1:19");
  CHECK(sources["launch.grace"] == "5s from job.yaml:2:17");
  CHECK(sources["launch.mpi"] == "auto from default");
  CHECK(sources["resources.nodes"] == "2 from --nodes");
  CHECK(sources["command[0]"] == "x from job.yaml:1:11");
  CHECK(sources["command[2]"] == "\"{a: b}\" from the command line");
}

TEST_CASE("what the job leaves to us is explained too") {
  std::map<std::string, std::string> found;
  for (const auto& leaf : plan::explain(job("command: [./prog]\n")->tree))
    found[leaf.path] = leaf.value + " from " + leaf.source;
  CHECK(found["framework"] == "plain from default");
  CHECK(found["name"] == "prog from default");
}

TEST_CASE("a place in a merged tree is the upper layer's, down to its keys") {
  const auto file = yaml::parse("command: [x]\nlaunch:\n  graze: 5s\n", "job.yaml").value();
  const auto tree = plan::merge_layers({plan::default_layer(), file}).value();
  CHECK(error_of(plan::read_job_spec(tree, "/")) ==
        "job.yaml:3:3: unknown key 'graze' in 'launch'\n  hint: did you mean 'grace'?");
}

TEST_CASE("flags: YAML, or text as it is; a mistyped one names itself") {
  using plan::Override;
  auto tree = yaml::parse("command: [x]\n", "job.yaml").value();
  REQUIRE(plan::apply_override(tree, {"name", "007", "--name", Override::Reading::text}).has_value());
  CHECK(plan::read_job_spec(tree, "/")->name == "007");
  REQUIRE(plan::apply_override(tree, {"checkpoint.dir", "a: b #c \"d\"", "--set", Override::Reading::text})
              .has_value());
  CHECK(plan::read_job_spec(tree, "/")->checkpoint.dir == "/a: b #c \"d\"");
  REQUIRE(plan::apply_override(tree, {"resources.nodes", "many", "--nodes"}).has_value());
  CHECK(error_of(plan::read_job_spec(tree, "/")) == "--nodes: resources.nodes: 'many' is not a whole number");
}

TEST_CASE("the default layer says nothing new: with it and without it a job reads the same") {
  const auto file = yaml::parse("command: [x]\n", "job.yaml").value();
  const auto with =
      plan::read_job_spec(plan::merge_layers({plan::default_layer(), file}).value(), "/").value();
  CHECK(to_json(with) == to_json(plan::read_job_spec(file, "/").value()));
}

TEST_CASE("the hint for another tool's key names a key that there is") {
  for (const OtherName& other : plan::other_keys()) {
    CAPTURE(other.theirs);
    const std::vector<std::string> keys = split(other.ours, '.');
    REQUIRE(keys.size() <= 2);
    const auto read =
        job(keys.size() == 1 ? keys[0] + ": [[]]\n" : fmt::format("{}: {{{}: [[]]}}\n", keys[0], keys[1]));
    // Whatever is wrong with the value, it is not the key.
    CHECK((read || read.error().what.find("unknown key") == std::string::npos));
  }
}

TEST_CASE("what the scheduler is asked for beside nodes and cores is read, and half of it is refused") {
  const auto spec =
      job("command: [a]\nresources: {gpus-per-node: 4, memory: 64GiB, gpu-type: a100, constraint: ib, "
          "exclusive: true, qos: high, mail: ann@example.org, walltime: UNLIMITED}\n")
          .value();
  CHECK(spec.resources.node.memory == std::uint64_t(64) << 30);
  CHECK(spec.resources.node.gpu_type == "a100");
  CHECK(spec.resources.node.constraint == "ib");
  CHECK(spec.resources.node.exclusive);
  CHECK(spec.resources.qos == "high");
  CHECK(spec.resources.mail_events == std::vector<std::string>{"end", "fail"});
  CHECK(spec.resources.walltime == kUnlimited);
  const auto why = [](const std::string& resources) {
    return job("command: [a]\nresources: {" + resources + "}\n").error().what;
  };
  CHECK(why("memory: 64") == "resources.memory: '64' is not a size");
  CHECK(why("gpu-type: a100") == "resources.gpu-type needs resources.gpus-per-node");
  CHECK(why("mail-events: [end]") == "resources.mail-events needs resources.mail");
  CHECK(why("mail: a@b, mail-events: [ende]") == "resources.mail-events: 'ende' is not known");
  CHECK(why("walltime: 24:00") ==
        "resources.walltime: '24:00' can be hours and minutes or minutes and seconds");
}

TEST_CASE("chunks are all nodes of the job") {
  const auto chunks = [](const std::string& more) {
    return job(
        "command: [a]\nresources: {chunks: [{nodes: 1, memory: 256GiB}, {nodes: 4, gpus: 8, cpus: 64}]" +
        more + "}\n");
  };
  const auto spec = chunks("").value();
  CHECK(spec.resources.nodes == 5);
  CHECK(spec.resources.chunks.at(1).gpus == 8);
  CHECK(chunks(", nodes: 5").has_value());
  CHECK(chunks(", nodes: 4").error().what == "resources.chunks has 5 nodes, and resources.nodes is 4");
}

TEST_CASE("a walltime may be written without quotes, and as schedulers write it") {
  for (const auto& [text, seconds] :
       {std::pair("24:00:00", 86400.0), std::pair("1h30m", 5400.0), std::pair("1d", 86400.0),
        std::pair("90min", 5400.0), std::pair("2-12:00:00", 216000.0), std::pair("1-00", 86400.0)})
    CHECK(job(fmt::format("command: [a]\nresources: {{walltime: {}}}\n", text))
              .value()
              .resources.walltime->count() == seconds);
}

TEST_CASE("a wrap needs a command, and ranks that are numbers") {
  const auto wrap = job("command: [a]\nlaunch: {wrap: {command: [nsys, profile], ranks: [0, 8]}}\n");
  REQUIRE_MESSAGE(wrap.has_value(), error_of(wrap));
  CHECK(wrap->launch.wrap->command == Argv{"nsys", "profile"});
  CHECK(wrap->launch.wrap->ranks == std::vector<Rank>{Rank(0), Rank(8)});
  CHECK(to_json(*wrap)["launch"]["wrap"] == Json{{"command", {"nsys", "profile"}}, {"ranks", {0, 8}}});
  const auto refused = [](const std::string& text) {
    return error_of(job("command: [a]\nlaunch: {wrap: " + text + "}\n"));
  };
  CHECK(refused("{ranks: [0]}").find("launch.wrap.command") != std::string::npos);
  CHECK(refused("{command: []}").find("launch.wrap.command is empty") != std::string::npos);
  CHECK(refused("{command: a, ranks: [-1]}").find("launch.wrap.ranks: '-1' is not a rank") !=
        std::string::npos);
  CHECK(refused("{command: a, rank: [1]}").find("did you mean 'ranks'?") != std::string::npos);
}

TEST_CASE("a range of nodes, and where it would change the training") {
  const auto resources = job("command: [x]\nresources: {nodes: 2-8}\n")->resources;
  CHECK(resources.nodes == 8);
  CHECK(resources.min_nodes == 2);
  CHECK_FALSE(job("command: [x]\nresources: {nodes: 4-4}\n")->resources.min_nodes.has_value());
  CHECK(error_of(job("command: [x]\nresources: {nodes: 8-2}\n")) ==
        "job.yaml:2:20: resources.nodes: '8-2' ends before it begins\n  hint: write 2-8");
  for (const char* bad : {"2-", "0-4", "2-8x", "2-4-8", "1-2000000"})
    CHECK_MESSAGE(error_of(job(fmt::format("command: [x]\nresources: {{nodes: {}}}\n", bad)))
                      .starts_with(fmt::format("job.yaml:2:20: resources.nodes: '{}' is not a range", bad)),
                  bad);
  const std::string train = "framework: builtin\nresources: {nodes: 1-2}\n";
  CHECK(error_of(job(train + "train: {batch: 8}\n"))
            .starts_with("job.yaml:2:20: resources.nodes is the range 1-2, and without train.shards"));
  CHECK(job(train + "train: {shards: 8}\n").has_value());
  CHECK(job(train + "train: {batch: 8}\nelastic: {}\n").has_value());
  CHECK(error_of(job("command: [x]\nresources: {nodes: 1-2, chunks: [{nodes: 2}]}\n"))
            .find("resources.nodes is a range") != std::string::npos);
}

TEST_CASE("elastic: how few may be left, and what does not go with it") {
  const std::string train = "framework: builtin\ntrain: {model: mnist-cnn}\n";
  CHECK_FALSE(job(train)->elastic.has_value());
  const auto elastic = job(train + "elastic: {min-nodes: 2}\n");
  REQUIRE_MESSAGE(elastic.has_value(), error_of(elastic));
  CHECK(elastic->elastic == plan::Elastic{.min_nodes = 2, .min_ranks = 1});
  CHECK(elastic->train.find("shards")->scalar == "auto");
  CHECK(job("framework: builtin\ntrain: {shards: 8}\nelastic: {}\n")->train.find("shards")->scalar == "8");
  CHECK(error_of(job("framework: builtin\ntrain: {benchmark: {steps: 3}}\nelastic: {}\n"))
            .find("train.benchmark") != std::string::npos);
  CHECK(error_of(job(train + "elastic: {min-nodes: 0}\n")).find("elastic.min-nodes") != std::string::npos);
  CHECK(error_of(job(train + "elastic: {}\nlaunch: {mpi: pmix}\n"))
            .find("'elastic' connects ranks over dlrun's own links, and launch.mpi is pmix") !=
        std::string::npos);
  CHECK(error_of(job(train + "elastic: {}\nenvironment: {set: {DLRUN_COMM: pmi}}\n")).find("DLRUN_COMM") !=
        std::string::npos);
  CHECK(error_of(job("framework: builtin\ntrain: {optimizer: {name: adamw, state: sharded}}\nelastic: {}\n"))
            .find("train.optimizer.state is sharded, and 'elastic' is set") != std::string::npos);
  CHECK(error_of(job("command: [x]\nelastic: {}\n")).find("'elastic' needs framework: builtin, not plain") !=
        std::string::npos);
}
