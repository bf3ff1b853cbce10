// Every framework that comes with dlrun, planned for 2 nodes of 8 GPUs: what its first and last rank of each
// role get, word for word (frameworks/NAME.txt). What dlrun itself sets for all frameworks is left out.
#include <set>

#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "tests/golden/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

Allocation two_nodes() {
  Allocation out;
  out.scheduler = "slurm";
  out.job_id = "4711";
  for (const char* host : {"gpu01", "gpu02"})
    out.nodes.push_back({.host = HostName(host),
                         .slots = 8,
                         .cpus = 64,
                         .gpus = std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7"}});
  return out;
}

std::string variables(const plan::EnvironmentChanges& changes, const std::string& before) {
  std::string out;
  for (const auto& [name, value] : changes)
    if (!name.starts_with("DLRUN_")) out += before + name + "=" + value + "\n";
  return out;
}

// Without the project's own path, whose quotes are no part of the plan.
std::string one_line(Argv argv) {
  for (std::string& word : argv)
    for (std::size_t at; (at = word.find(kData.string())) != std::string::npos;)
      word.replace(at, kData.string().size(), "DATA");
  std::string text = shell_join(argv);
  if (const std::size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
  return text;
}

std::string rank_text(const plan::Plan& plan, const plan::RankPlan& rank) {
  std::string out =
      fmt::format("\nrank {}: {} {} on {}{}{}\n", rank.rank, rank.role, rank.task_index,
                  plan.nodes[static_cast<std::size_t>(rank.node.get())].host,
                  rank.port ? fmt::format(", port {}", *rank.port) : "", rank.service ? ", a service" : "");
  out += variables(rank.environment, "  ") + variables(rank.defaults, "  unless set: ");
  return out + "  $ " + one_line(rank.argv) + "\n";
}

std::string plan_text(const plan::Plan& plan) {
  std::string out = fmt::format("{} ranks, {}, mpi {}\n", plan.world_size(), plan::to_text(plan.process),
                                plan::to_text(plan.mpi));
  for (const Argv& probe : plan.prolog.needs)
    out += "needs " + (probe[0] == "sh" ? probe.back() : join({probe.begin() + 4, probe.end()}, ", ")) + "\n";
  out += variables(plan.environment, "all: ");
  for (const auto& [name, before] : plan.interface_variables)
    out += "unless set: " + name + "=" + before + "INTERFACE\n";
  for (const auto& [name, text] : plan.files)
    if (name != "train.json") out += fmt::format("file {}:\n{}", name, text);
  std::map<std::string, std::pair<int, int>> of_role;
  for (const plan::RankPlan& rank : plan.ranks)
    of_role.try_emplace(rank.role, rank.rank.get(), 0).first->second.second = rank.rank.get();
  for (const plan::RankPlan& rank : plan.ranks) {
    const auto [first, last] = of_role[rank.role];
    if (rank.rank.get() == first || rank.rank.get() == last) out += rank_text(plan, rank);
  }
  return out;
}

std::string job_of(const std::string& framework) {
  const std::string head = "name: flowers\nframework: " + framework + "\nresources: {gpus-per-node: 8}\n";
  if (framework == "builtin") return head + "train: {model: m}\n";
  return head + "command: [python, train.py]\n";
}

// What a job with all groups that the framework knows adds to the last rank.
std::string parallel_text(const plan::Adapter& adapter) {
  if (!adapter.parallel || adapter.parallel->groups.empty()) return "";
  std::vector<std::string> sizes;
  for (const plan::GroupKind kind : adapter.parallel->groups)
    sizes.push_back(fmt::format("{}: 2", plan::name_of(kind)));
  std::string out;
  for (const plan::GroupOrder& order : adapter.parallel->orders) {
    std::vector<std::string> names;
    for (const plan::GroupKind kind : order) names.emplace_back(plan::name_of(kind));
    const std::string section =
        fmt::format("parallel: {{{}, order: [{}]}}\n", join(sizes, ", "), join(names, ", "));
    const auto plan = plan_job(read_job(job_of(adapter.name) + section).value(), two_nodes());
    REQUIRE_MESSAGE(plan.has_value(), plan.error().text());
    out += fmt::format("\n{}", section);
    out += "  $ " + one_line(plan->ranks.back().argv) + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("frameworks: what the ranks of 2 nodes with 8 GPUs get") {
  const auto all = plan::all_adapters(plan::adapter_path({}, "", kData));
  REQUIRE_MESSAGE(all.has_value(), all.error().text());
  std::set<std::string> names;
  for (const plan::Adapter& adapter : *all) {
    CAPTURE(adapter.name);
    names.insert(adapter.name + ".txt");
    CHECK_MESSAGE(
        (adapter.name == "builtin" || fs::exists(kData / "share/examples" / (adapter.name + ".yaml"))),
        "it has no example in share/examples");
    const auto spec = read_job(job_of(adapter.name));
    REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
    const auto plan = plan_job(*spec, two_nodes());
    REQUIRE_MESSAGE(plan.has_value(), plan.error().text());
    compare(kHere / "frameworks" / (adapter.name + ".txt"), plan_text(*plan) + parallel_text(adapter));
  }
  for (const fs::path& file : sorted(kHere / "frameworks"))
    CHECK_MESSAGE(names.contains(file.filename().string()), file.string() << " is of no framework");
}
