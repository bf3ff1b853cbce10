// Axes: which keys of the job a point sets, under the builtin framework and others.
#include "src/bench/axis_keys.hpp"

#include <doctest/doctest.h>

#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

const std::string kBuiltin =
    "framework: builtin\ntrain: {model: mnist-cnn, data: {format: images, dir: d}, epochs: 3";

plan::BenchPoint point(const std::vector<std::string>& axes) {
  plan::BenchPoint out;
  for (const std::string& text : axes) {
    plan::BenchAxis axis = plan::bench_axis_of(text).value();
    out.push_back({axis.key, axis.values.front(), axis.source});
  }
  return out;
}

std::vector<std::string> texts(const std::vector<plan::Override>& overrides) {
  std::vector<std::string> out;
  for (const plan::Override& one : overrides) out.push_back(one.path + "=" + one.value);
  return out;
}

plan::BenchSpec section(const std::string& keys) {
  return job("command: [x]\nbench: {" + keys + "}\n").value().bench.value();
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("short names and paths set keys of the job") {
  const auto spec = job(kBuiltin + "}\n").value();
  const auto set = bench::overrides_of(point({"nodes=2", "servers=3", "threads=4", "bucket=1MiB",
                                              "train.optimizer.lr=0.1", "data=real", "tensor-parallel=2"}),
                                       spec);
  CHECK(texts(set.value()) == Texts{"resources.nodes=2", "train.parameter-server.servers=3",
                                    "environment.set.OMP_NUM_THREADS=4", "train.allreduce.bucket=1MiB",
                                    "train.optimizer.lr=0.1", "parallel.tensor=2"});
}

TEST_CASE("a rank has at least one thread") {
  const auto error = [](const std::string& axis) {
    return error_of(bench::check_value(point({axis}).front()));
  };
  CHECK(error("threads=0") == "--axis threads: the axis 'threads': 0 is out of range [1, 1048576]");
  CHECK(error("threads=-3").find("-3 is out of range") != std::string::npos);
  CHECK(error("threads=many").find("the axis 'threads'") != std::string::npos);
  CHECK(bench::check_value(point({"threads=1"}).front()));
}

TEST_CASE("two axes that set the same key of the job are refused, with both names") {
  const auto builtin = job(kBuiltin + "}\n").value();
  const auto error = [&](const std::string& one, const std::string& other) {
    return error_of(bench::check_distinct(point({one, "nodes=1", other}), builtin));
  };
  CHECK(error("batch=4", "train.batch=8") ==
        "--axis train.batch: the axes 'batch' and 'train.batch' both set train.batch\n"
        "  hint: remove one of the two");
  CHECK(error("global-batch=4", "batch=8").find("'global-batch' and 'batch'") != std::string::npos);
  CHECK(error("gpus=1", "resources.nodes=8").find("'nodes' and 'resources.nodes'") != std::string::npos);
  CHECK(error("environment.set.OMP_NUM_THREADS=1", "threads=8").find("both set environment.set.OMP_NUM") !=
        std::string::npos);
  CHECK(bench::check_distinct(point({"nodes=1", "batch=8", "threads=2"}), builtin));
  const auto plain = job("command: [x]\n").value();
  CHECK_FALSE(bench::check_distinct(point({"servers=1", "roles.ps.count=2"}), plain));
}

TEST_CASE("made-up data have the shape that the section tells") {
  CHECK(error_of(bench::overrides_of(point({"data=synthetic"}), job(kBuiltin + "}\n").value()))
            .starts_with(
                "--axis data: the axis 'data' has 'synthetic', and the shape of such data is not set"));
  const auto said = bench::overrides_of(
      point({"data=synthetic"}), job(kBuiltin + "}\nbench: {synthetic: {shape: [3, 224, 224]}}\n").value());
  CHECK(said.value().at(0).value == "null");  // no key of the real data stays
  CHECK(said.value().at(1).value == R"({"shape":[3,224,224],"format":"synthetic"})");
}

TEST_CASE("with other frameworks servers are tasks of a role, and a batch is the program's own matter") {
  const auto own = job(kBuiltin + "}\nroles: {ps: {count: 1}}\n").value();
  CHECK(texts(bench::overrides_of(point({"servers=2"}), own).value()) == Texts{"roles.ps.count=2"});
  CHECK(texts(bench::overrides_of(point({"placement=split"}), own).value()) ==
        Texts{"train.parameter-server.placement=split"});
  const auto spec = job("framework: tensorflow-ps\ncommand: [python, t.py]\n").value();
  CHECK(texts(bench::overrides_of(point({"servers=2"}), spec).value()) == Texts{"roles.ps.count=2"});
  CHECK(error_of(bench::overrides_of(point({"batch=2"}), spec)) ==
        "--axis batch: the axis 'batch' needs framework: builtin, not tensorflow-ps\n"
        "  hint: the program can read a variable: --axis environment.set.BATCH=32,64");
}

TEST_CASE("an axis that is no key is refused with the nearest one") {
  CHECK(error_of(bench::check_axis("batsh", "--axis batsh")) ==
        "--axis batsh: unknown axis 'batsh'\n  hint: did you mean 'batch'?");
  CHECK(error_of(bench::check_axis("learning", "x"))
            .ends_with("data; or any key of the job file with its section, as train.optimizer.lr"));
  CHECK(error_of(bench::check_axis("bench.steps", "x")) ==
        "x: the axis 'bench.steps' would change the benchmark itself");
}

TEST_CASE("a global batch is divided over the ranks, or over the shards") {
  const auto batch = [](const std::string& axis, const std::string& more, int ranks) {
    return bench::global_batch_of(point({axis}), job(kBuiltin + more + "}\n").value(), ranks);
  };
  CHECK(batch("global-batch=64", "", 4).value()->value == "16");
  CHECK(batch("global-batch=64", ", shards: 8", 4).value()->value == "8");
  CHECK(error_of(batch("global-batch=64", "", 3)) ==
        "--axis global-batch: global-batch 64 cannot be divided by 3 ranks or shards");
  CHECK(batch("global-batch=64", ", accumulate: 4", 2).value()->value == "8");
  CHECK(batch("global-batch=64", ", shards: 8, accumulate: 2", 4).value()->value == "4");
  CHECK(error_of(batch("global-batch=64", ", accumulate: 3", 4)) ==
        "--axis global-batch: global-batch 64 cannot be divided by 4 ranks or shards x accumulate 3");
  const dlrun::plan::Override own = *batch("global-batch=64", ", global-batch: 32", 3).value();
  CHECK((own.path == "train.global-batch" && own.value == "64"));
  CHECK_FALSE(batch("nodes=1", "", 3).value().has_value());
}

TEST_CASE("a rate is measured by the benchmark of the builtin trainer, metrics by epochs") {
  const auto spec = job(kBuiltin + "}\n").value();
  CHECK(texts(bench::measuring_overrides({}, spec)) ==
        Texts{"train.epochs=null", "train.stop-at=null", "elastic=null", "train.benchmark.warmup=10",
              "train.benchmark.steps=100", "train.benchmark.repeat=1"});
  const auto own = job("framework: builtin\ntrain: {model: mnist-cnn, data: {format: synthetic}, "
                       "benchmark: {steps: 7, repeat: 2}}\n")
                       .value();
  CHECK(texts(bench::measuring_overrides(section("warmup: 1"), own)) ==
        Texts{"train.epochs=null", "train.stop-at=null", "elastic=null", "train.benchmark.warmup=1"});
  CHECK(texts(bench::measuring_overrides(section("epochs: 2"), spec)) ==
        Texts{"train.benchmark=null", "train.epochs=2"});
  CHECK(bench::measuring_overrides({}, job("command: [x]\n").value()).empty());
}
