// Whatever people, sites and other programs hand to the launcher, its readers answer with a value or an Error
// that has words, and a plan that comes out of a damaged job is a whole one.
#include <algorithm>

#include <doctest/doctest.h>

#include "src/plan/adapter.hpp"
#include "src/plan/make_plan.hpp"
#include "src/protocol/message_stream.hpp"
#include "src/record/hosts_request.hpp"
#include "src/render/template.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using test::Mutator;
using test::Texts;

namespace {

const std::string kJob = R"(name: flowers
framework: plain
resources: {nodes: 1, gpus-per-node: 2, tasks-per-node: 2, cpus-per-task: 2, walltime: "8:00:00"}
roles:
  ps: {count: 1, placement: shared}
  worker: {per-node: 2, gpus: 1}
command: [python, train.py, --batch-size, "32"]
environment:
  modules: [cuda/11.8]
  setup: [ulimit -l unlimited]
  set: {OMP_NUM_THREADS: "4"}
launch: {via: auto, fan-out: 32, start-timeout: 120s, mpi: none}
checkpoint: {dir: ckpt, every: 10min, keep: 3, request: [control, file, signal:TERM], lead: auto}
chain: {max-links: 20, retries: 3}
)";
const std::string kSmallJob = "command: [/bin/true]\n";
const std::string kAdapter = R"(name: some
summary: a framework
process: per-rank
mpi: auto
files: {train.json: "{{train.config}}"}
checks: [["{{install.bin}}/dlrun-train", --check, "{{run.directory}}/train.json"]]
command: ["{{install.bin}}/dlrun-train", --config, "{{run.directory}}/train.json"]
)";

template <class R>
bool is_sound(const R& result) {
  return result.has_value() || !result.error().text().empty();
}

bool is_whole(const plan::Plan& plan) {
  for (std::size_t i = 0; i < plan.ranks.size(); ++i)
    if (plan.ranks[i].rank.get() != static_cast<int>(i)) return false;
  return !plan.ranks.empty();
}

}  // namespace

TEST_CASE("a damaged job file is an error with words, or a plan with every rank once") {
  REQUIRE(test::job(kJob));
  Mutator mutator({kJob, kSmallJob}, test::odd_values());
  for (Texts texts; texts.next();) {
    const std::string text = mutator.next();
    CAPTURE(text);
    const auto job = test::job(text);
    REQUIRE(is_sound(job));
    if (!job) continue;
    plan::PlanInput input = test::input(kSmallJob, test::machine(8, std::vector<std::string>{"0", "1"}));
    input.spec = *job;
    const auto plan = plan::make_plan(input);
    REQUIRE(is_sound(plan));
    if (plan) REQUIRE(is_whole(*plan));
  }
}

TEST_CASE("--set with damaged paths and values") {
  Mutator paths({"train.epochs", "resources.nodes", "roles.ps.count"},
                {".", "..", "[0]", "", " ", "\n", "=", "a.b.c"});
  Mutator values({"1", "[1, 2]", "{a: b}"}, test::odd_values());
  for (Texts texts; texts.next();) {
    auto tree = yaml::parse(kJob, "job.yaml").value();
    const std::string path = paths.next(), value = values.next();
    CAPTURE(path);
    CAPTURE(value);
    REQUIRE(is_sound(yaml::set_path(tree, path, value, "--set")));
  }
}

TEST_CASE("a damaged adapter") {
  REQUIRE(plan::parse_adapter(kAdapter, "some.yaml"));
  Mutator mutator({kAdapter}, test::odd_values());
  for (Texts texts; texts.next();) REQUIRE(is_sound(plan::parse_adapter(mutator.next(), "some.yaml")));
}

TEST_CASE("a damaged request for other nodes") {
  const std::string good = R"({"id": "4711", "change": "leave", "hosts": ["c3", "c4"]})";
  const auto read = [](const std::string& text) -> Result<job::HostsRequest> {
    return job::hosts_request_from_json(TRY(parse_json(text, "hosts-request.json")), "hosts-request.json");
  };
  REQUIRE(read(good));
  Mutator mutator({good}, test::odd_values());
  for (Texts texts; texts.next();) REQUIRE(is_sound(read(mutator.next())));
}

TEST_CASE("a damaged template") {
  const std::string good =
      "{{#ranks}}run {{name}} {{{raw}}}\n{{/ranks}}{{^ranks}}none{{/ranks}}{{! said }}\n";
  REQUIRE(render::Template::parse(good, "node.sh.tmpl"));
  Mutator mutator({good},
                  {"{{", "}}", "{{#", "{{/", "{{^", "{{{", "}}}", "{{!", "{{#a}}", "{{/ranks}}", ".", "\n"});
  const Json context = {{"ranks", Json::array({{{"name", "x y"}, {"raw", "z"}}})}};
  for (Texts texts; texts.next();) {
    const auto parsed = render::Template::parse(mutator.next(), "node.sh.tmpl");
    REQUIRE(is_sound(parsed));
    if (parsed)
      REQUIRE(is_sound(parsed->render(context, [](std::string_view text) { return std::string(text); })));
  }
}

TEST_CASE("damaged allocations and plans, as --allocation and agents read them") {
  const plan::Plan plan = plan::make_plan(test::input(kSmallJob, test::machine(4))).value();
  Mutator mutator(
      {to_text(to_json(test::machine(4, std::vector<std::string>{"0"}))), to_text(plan::to_json(plan)),
       to_text(plan::to_json(plan::Slicer(plan).slice_of(NodeIndex(0))))},
      {"null", "-1", "1e300", "[]", "{}", "\"\"", "\"x\"", ",", ":", "true", "99999999999999"});
  for (Texts texts; texts.next();) {
    const auto json = parse_json(mutator.next(), "input.json");
    REQUIRE(is_sound(json));
    if (!json) continue;
    REQUIRE(is_sound(allocation_from_json(*json, "input.json")));
    REQUIRE(is_sound(plan::plan_from_json(*json)));
    REQUIRE(is_sound(plan::slice_from_json(*json)));
  }
}

TEST_CASE("JSON is read as its library reads it, except what is too deep") {
  const std::string deep = std::string(kMaxJsonDepth - 1, '[') + "1" + std::string(kMaxJsonDepth - 1, ']');
  Mutator mutator(
      {R"({"a": [1, -2, 3.5e3, "x\u00e4\n"], "b": {"c": null, "a": true}, "n": 18446744073709551615})", deep,
       "[" + deep + "," + deep + "]"},
      {"[[", "{\"a\":", "\"", "]", "}", ",", "1e999", "\xff", "\\u12", "nul", "[[[[[[[["});
  for (Texts texts; texts.next();) {
    const std::string text = mutator.next();
    CAPTURE(text);
    const auto json = parse_json(text, "input.json");
    const Json plain = Json::parse(text, nullptr, false);
    REQUIRE(is_sound(json));
    if (json)
      REQUIRE(*json == plain);
    else if (!plain.is_discarded())
      REQUIRE(json.error().what == "nested deeper than 64 levels");
  }
}

TEST_CASE("damaged frames between head and agent") {
  Mutator mutator({encode({{{"type", "output"}, {"rank", 3}}, "hello\n"}) + encode({{{"type", "done"}}})},
                  {std::string(8, '\xff'), std::string(4, '\0'), "{", "}", "\"type\"", "7"});
  for (Texts texts; texts.next();) {
    MessageDecoder decoder;
    decoder.add(mutator.next());
    for (bool more = true; more;) {
      const auto message = decoder.next();
      REQUIRE(is_sound(message));
      more = message && message->has_value();
    }
  }
}
