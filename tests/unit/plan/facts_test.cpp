#include "src/plan/facts.hpp"

#include <set>

#include <doctest/doctest.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/plan/adapter.hpp"
#include "src/plan/host_facts.hpp"
#include "src/plan/role_facts.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

// The names in ".It Va NAME" or ".It Cm NAME" lines of a manual page's section.
std::set<std::string> items(const std::string& page, const std::string& macro) {
  std::set<std::string> out;
  const std::string text = read_file(std::string(TEST_SOURCE_DIR) + "/man/" + page).value();
  for (const std::string& line : split(text, '\n'))
    if (line.starts_with(macro + " ")) out.insert(split(line.substr(macro.size() + 1), ' ')[0]);
  return out;
}

}  // namespace

TEST_CASE("all facts, and no others, are computed") {
  const auto in = input("framework: builtin\ntrain: {model: m}\ncheckpoint: {dir: c}\n", machine(4));
  plan::Plan plan;
  plan.job_id = "x";
  plan.nodes = {{.index = NodeIndex(0), .host = HostName("laptop")}};
  plan.ranks.resize(1);
  plan.stage = {"/staged", {{.name = "NAME", .from = "/a"}}};
  plan::Facts facts = plan::facts_of_job(plan, in.spec, in.installation, {2});
  plan::add_role_facts(facts, plan, {"NAME"});
  for (const plan::FactInfo& fact : plan::all_facts())
    CHECK_MESSAGE(facts.contains(fact.name) == (fact.scope == plan::Scope::job), fact.name);
  plan::set_facts_of_rank(facts, plan, plan.ranks[0], {});
  for (const plan::FactInfo& fact : plan::all_facts()) CHECK_MESSAGE(facts.contains(fact.name), fact.name);
  CHECK(facts.size() == plan::all_facts().size());
}

TEST_CASE("dlrun-framework(5) describes the facts that there are, with the code's own words") {
  std::set<std::string> known;
  for (const plan::FactInfo& fact : plan::all_facts()) known.insert(std::string(fact.name));
  CHECK(items("dlrun-framework.5", ".It Va") == known);
}

TEST_CASE("dlrun-framework(5) lists exactly the keys that an adapter can have") {
  const std::string error = error_of(plan::parse_adapter("qqqqqqqqqqqqqqqqqqqq: 1\n", "a.yaml"));
  const auto list = error.find("valid names: ");
  REQUIRE(list != std::string::npos);
  std::set<std::string> known;
  for (const std::string& key : split(error.substr(list + 13), ',')) known.insert(std::string(trim(key)));
  CHECK(items("dlrun-framework.5", ".It Cm") == known);
}

TEST_CASE("dlrun-job(5) lists exactly the keys that a job file can have") {
  // Every key is asked for by reading; a map with one impossible key names all the possible ones.
  const std::map<std::string, std::string> sections{
      {"", ""},
      {"resources", "resources: {@: 1}"},
      {"roles.NAME", "roles: {a: {@: 1}}"},
      {"environment", "environment: {@: 1}"},
      {"environment.container", "environment: {container: {@: 1}}"},
      {"launch", "launch: {@: 1}"},
      {"launch.ssh", "launch: {ssh: {@: 1}}"},
      {"checkpoint", "checkpoint: {@: 1}"},
      {"chain", "chain: {@: 1}"},
      {"stage", "stage: [{from: a, @: 1}]"},
      {"parallel", "parallel: {@: 1}"},
      {"elastic", "elastic: {@: 1}"},
      {"bench", "bench: {@: 1}"}};
  std::set<std::string> known;
  for (const auto& [section, text] : sections) {
    const std::string impossible = "qqqqqqqqqqqqqqqqqqqq";
    std::string job_text = section.empty() ? impossible + ": 1" : text;
    if (const auto at = job_text.find('@'); at != std::string::npos) job_text.replace(at, 1, impossible);
    const std::string error = error_of(job("command: [x]\n" + job_text + "\n"));
    const auto list = error.find("valid names: ");
    REQUIRE_MESSAGE(list != std::string::npos, error);
    for (const std::string& key : split(error.substr(list + 13), ','))
      known.insert((section.empty() ? "" : section + ".") + std::string(trim(key)));
  }
  CHECK(items("dlrun-job.5", ".It Cm") == known);
}

TEST_CASE("the rendezvous port: the same for the same run, another one for the next attempt") {
  const int port = plan::rendezvous_port("demo-1", 1);
  CHECK(port == plan::rendezvous_port("demo-1", 1));
  CHECK(port != plan::rendezvous_port("demo-1", 2));
  for (int attempt = 1; attempt < 20000; attempt += 7) {
    const int any = plan::rendezvous_port("other", attempt);
    CHECK((any >= 20000 && any < 30000));
  }
}

TEST_CASE("the builtin trainer's section keeps its places, and its data folder becomes absolute") {
  const auto spec = job("framework: builtin\nname: n\ntrain:\n  data: {dir: data}\n  lr: 5e-4\n"
                        "checkpoint: {dir: ckpt, keep: 2}\n")
                        .value();
  const auto node = yaml::from_json_with_sources(plan::train_config(spec)).value();
  const yaml::Node* dir = node.find("train")->find("data")->find("dir");
  CHECK(dir->scalar == "/home/ann/jobs/data");
  CHECK(dir->source == "job.yaml:4:15");
  CHECK(node.find("train")->find("lr")->scalar == "5e-4");
  CHECK(node.find("checkpoint")->find("dir")->scalar == "/home/ann/jobs/ckpt");
  CHECK(node.find("checkpoint")->find("keep")->source == "job.yaml:6:31");
  CHECK(node.find("checkpoint")->find("every")->scalar == "10min");
  CHECK(node.find("checkpoint")->find("every")->source == "checkpoint.every (default)");
  CHECK(plan::train_config(job("framework: builtin\ntrain: {}\n").value())["value"].contains("checkpoint") ==
        false);
}

TEST_CASE("hosts in each launcher's dialect; nodes that differ have no common number") {
  plan::Plan plan;
  plan.nodes = {{.index = NodeIndex(0), .host = HostName("a")},
                {.index = NodeIndex(1), .host = HostName("b"), .address = "10.0.0.2"}};
  plan::Facts facts;
  plan::add_host_facts(facts, plan, {2, 1});
  CHECK(plan::fact_text(facts["hostfile.openmpi"]) == "a slots=2\nb slots=1\n");
  CHECK(plan::fact_text(facts["hostfile.mpich"]) == "a:2\nb:1\n");
  CHECK(plan::fact_text(facts["hostfile.plain"]) == "a\nb\n");
  CHECK(plan::fact_text(facts["hostfile.repeated"]) == "a\na\nb\n");
  CHECK(plan::fact_text(facts["hosts.slots"]) == "a:2,b:1");
  CHECK(plan::fact_text(facts["node.addresses"]) == "a,10.0.0.2");
  CHECK(facts["task.count"] == 3);
  CHECK(facts["tasks.per-node"].is_null());
  plan::add_host_facts(facts, plan, {2, 2});
  CHECK(facts["tasks.per-node"] == 2);
  CHECK(plan::host_and_port("fe80::1", 7) == "[fe80::1]:7");
}

TEST_CASE("the places of ranks in their roles: on their nodes, and across nodes") {
  plan::Plan plan;
  for (const auto& [role, node] :
       std::vector<std::pair<const char*, int>>{{"w", 0}, {"w", 0}, {"w", 1}, {"s", 0}}) {
    plan.ranks.emplace_back();
    plan.ranks.back().role = role;
    plan.ranks.back().node = NodeIndex(node);
  }
  std::vector<plan::RankShare> shares(4);
  plan::set_role_places(shares, plan);
  const auto place = [&](std::size_t i) {
    return fmt::format("{}/{} {}/{}", shares[i].role_local, shares[i].role_ranks, shares[i].cross_index,
                       shares[i].cross_size);
  };
  CHECK(place(0) == "0/2 0/2");
  CHECK(place(1) == "1/2 0/1");
  CHECK(place(2) == "0/1 1/2");
  CHECK(place(3) == "0/1 0/1");
}

TEST_CASE("facts of a role's first task, and its list as lines") {
  plan::Plan plan;
  plan.nodes = {{.index = NodeIndex(0), .host = HostName("a")}};
  plan.ranks.resize(2);
  for (int i = 0; i < 2; ++i) {
    plan.ranks[static_cast<std::size_t>(i)].role = "ps";
    plan.ranks[static_cast<std::size_t>(i)].port = 2230 + i;
  }
  plan::Facts facts;
  plan::add_role_facts(facts, plan, {"ps", "absent"});
  CHECK(facts["role.ps.host"] == "a");
  CHECK(facts["role.ps.port"] == 2230);
  CHECK(facts["role.ps.address"] == "a:2230");
  CHECK(facts["role.ps.lines"] == "a:2230\na:2231\n");
  CHECK(facts["role.absent.address"].is_null());
  CHECK(facts["role.absent.count"] == 0);
}
