#include "src/render/node_script.hpp"

#include <algorithm>
#include <array>

#include "src/base/file.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/plan/secret_words.hpp"
#include "src/plan/secrets.hpp"

namespace dlrun::render {
namespace {

using plan::EnvironmentChanges;
using plan::MpiProtocol;
using plan::Plan;
using plan::RankPlan;

// For comments and messages, where a newline would start a line of its own.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

// For text between double quotes in bash.
std::string inside_quotes(const std::string& text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

// Maps that are made for every rank or variable are filled in place: an initializer list allocates for every
// value, and an ordered map that grows copies what it has.
Json named_value(const std::string& name, const std::string& value) {
  Json::object_t out;
  out.reserve(2);
  out.emplace_back("name", name);
  out.emplace_back("value", value);
  return out;
}

// Bash cannot export a name that is no identifier; the agent, which can, is not limited by this.
Json exports(const EnvironmentChanges& changes) {
  Json::array_t out;
  out.reserve(changes.size());
  for (const auto& [name, value] : changes)
    if (is_shell_identifier(name)) out.push_back(named_value(name, value));
  return out;
}

// A script is a file: secrets are not written there, but taken from whoever runs it by hand.
EnvironmentChanges take_secrets(EnvironmentChanges& changes, const plan::EnvironmentRules& rules) {
  EnvironmentChanges out;
  changes.erase_if([&](const auto& entry) {
    return plan::is_secret(entry.first, rules.secrets) && out.emplace(entry.first, entry.second).second;
  });
  return out;
}

Json rank_context(const RankPlan& rank) {
  Json share = nullptr;
  if (rank.cpus && rank.cpus->of > 1) share = {{"share", rank.cpus->share}, {"of", rank.cpus->of}};
  Json::object_t out;
  out.reserve(7);
  out.emplace_back("index", rank.rank.get());
  out.emplace_back("role", one_line(rank.role));
  out.emplace_back("task_index", rank.task_index);
  out.emplace_back("defaults", exports(rank.defaults));
  out.emplace_back("exports", exports(rank.environment));
  out.emplace_back("share", std::move(share));
  out.emplace_back("command", shell_line(rank.argv));
  return out;
}

struct Launcher {
  const char* flavour;
  const char* launchers;
  const char* version;  // what --version says
  const char* options;
  const char* rank_variable;
};

// How each flavour's own launcher starts the ranks of one node.
const Launcher& launcher_of(MpiProtocol protocol) {
  static const Launcher openmpi{"Open MPI", "mpirun.openmpi mpirun", "Open MPI",
                                "--oversubscribe --bind-to none", "OMPI_COMM_WORLD_RANK"};
  static const Launcher mpich{"MPICH or Intel MPI", "mpiexec.hydra mpirun.mpich mpiexec",
                              "HYDRA\\|Hydra\\|Intel", "-bind-to none", "PMI_RANK"};
  return protocol == MpiProtocol::pmi1 ? mpich : openmpi;
}

Json mpi_context(const Plan& plan, const Json::array_t& ranks) {
  if (plan.mpi == MpiProtocol::none || ranks.empty()) return nullptr;
  if (plan.world_size() == 1) return nullptr;  // a world of one needs no launcher
  const Launcher& launcher = launcher_of(plan.mpi);
  return {{"many_nodes", plan.nodes.size() > 1 || plan.mpi == MpiProtocol::native},
          {"flavour", launcher.flavour},
          {"launchers", launcher.launchers},
          {"version", launcher.version},
          {"options", launcher.options},
          {"rank_variable", launcher.rank_variable},
          {"first_rank", ranks.front()["index"]},
          {"rank_count", ranks.size()}};
}

Json modules_context(const Plan& plan) {
  Json out = Json::array();
  for (const std::string& name : plan.prolog.modules)
    out.push_back({{"name", name}, {"what", "module load " + name}});
  return out;
}

Json module_paths_context(const Plan& plan) {
  Json out = Json::array();
  for (const std::string& path : plan.prolog.module_paths)
    out.push_back({{"path", path}, {"what", one_line("module use " + path)}});
  return out;
}

Json setup_context(const Plan& plan) {
  Json out = Json::array();
  for (const std::string& line : plan.prolog.setup)
    out.push_back(
        {{"line", line},
         {"what", one_line(fmt::format("environment.setup[{}]: {}", out.size(),
                                       plan::without_secret_values(line, plan.environment_rules.secrets)))}});
  return out;
}

// A probe says by itself what is missing; only the place is added.
Json needs_context(const Plan& plan) {
  Json out = Json::array();
  for (const Argv& probe : plan.prolog.needs)
    out.push_back({{"command", shell_line(probe)},
                   {"what", "looking for what framework " + one_line(plan.framework) + " needs"}});
  return out;
}

Json files_context(const Plan& plan) {
  Json out = Json::array();
  for (const auto& [name, text] : plan.files)
    out.push_back({{"path", plan.run_directory + "/" + name}, {"text", text}});
  return out;
}

Json checks_context(const Plan& plan, NodeIndex node) {
  Json out = Json::array();
  if (node.get() != 0) return out;  // once per job, not once per node
  for (const Argv& check : plan.checks)
    out.push_back({{"command", shell_line(check)},
                   {"what", one_line("the check: " + shell_join(plan::without_secret_values(
                                                         check, plan.environment_rules.secrets)))}});
  return out;
}

Json stage_context(const plan::Stage& stage) {
  if (stage.empty()) return nullptr;
  Json items = Json::array();
  for (const plan::StageIn& item : stage.items)
    items.push_back({{"name", item.name}, {"from", item.from}, {"how", item.unpack ? "unpack" : "link"}});
  return {{"folder", stage.folder}, {"items", std::move(items)}};
}

Json plan_context(const Plan& plan) {
  Json activate = nullptr;
  if (!plan.prolog.activate.empty())
    activate = {{"line", plan.prolog.activate}, {"what", "environment.activate: " + plan.prolog.activate}};
  EnvironmentChanges open = plan.environment;
  const EnvironmentChanges secrets = take_secrets(open, plan.environment_rules);
  return {{"name", one_line(plan.name)},
          {"job_id", one_line(plan.job_id)},
          {"node_count", plan.nodes.size()},
          {"has_prolog", !plan.prolog.empty()},
          {"stage", stage_context(plan.stage)},
          {"uses_modules", !plan.prolog.module_paths.empty() || !plan.prolog.modules.empty()},
          {"module_paths", module_paths_context(plan)},
          {"has_modules", !plan.prolog.modules.empty()},
          {"modules", modules_context(plan)},
          {"activate", std::move(activate)},
          {"has_lines", !plan.prolog.activate.empty() || !plan.prolog.setup.empty()},
          {"setup", setup_context(plan)},
          {"needs", needs_context(plan)},
          {"exports", exports(open)},
          {"secrets", exports(secrets)},
          {"working_directory", plan.working_directory},
          {"has_files", !plan.files.empty()},
          {"files", files_context(plan)},
          {"grace", fmt::format("{}", plan.limits.grace.count())}};
}

// One of everything, so that every name in the template is looked up whatever the job at hand uses.
Plan example() {
  Plan plan;
  plan.prolog = {.module_paths = {"p"}, .modules = {"m"}, .activate = "a", .setup = {"s"}, .needs = {{"n"}}};
  plan.stage = {.folder = "/s", .items = {{.name = "s", .from = "/f"}}};
  plan.environment = {{"A", "a"}, {"A_TOKEN", "a"}};
  plan.mpi = MpiProtocol::pmix;
  plan.checks = {{"c"}};
  plan.files = {{"f", "f"}};
  plan.nodes = {{.index = NodeIndex(0), .host = HostName("h")}};
  for (int i = 0; i < 2; ++i) {
    RankPlan rank;
    rank.rank = Rank(i);
    rank.role = "worker";
    rank.cpus = plan::CpuShare{.share = i, .of = 2};
    rank.environment = rank.defaults = {{"B", "b"}};
    rank.argv = {"c"};
    plan.ranks.push_back(rank);
  }
  return plan;
}

}  // namespace

NodeScripts::NodeScripts(const Plan& plan, const Template& script)
    : plan_(plan), script_(script), ranks_(plan.nodes.size()), shared_(plan_context(plan)) {
  for (const RankPlan& rank : plan.ranks) ranks_[static_cast<std::size_t>(rank.node.get())].push_back(&rank);
}

Json NodeScripts::of_node(NodeIndex node) const {
  const auto& here = ranks_[static_cast<std::size_t>(node.get())];
  Json::array_t ranks;
  ranks.reserve(here.size());
  bool has_shares = false;
  std::string services;
  for (const RankPlan* rank : here) {
    ranks.push_back(rank_context(*rank));
    if (rank->service) services += fmt::format("{}[{}]=1", services.empty() ? "" : " ", rank->rank);
    has_shares = has_shares || (rank->cpus && rank->cpus->of > 1);
  }
  Json::object_t out;
  out.reserve(10);
  out.emplace_back("number", node.get() + 1);
  out.emplace_back("host", inside_quotes(plan_.nodes[static_cast<std::size_t>(node.get())].host.get()));
  out.emplace_back("has_shares", has_shares);
  out.emplace_back("has_services", !services.empty());
  out.emplace_back("services_end_here", !services.empty() && plan_.nodes.size() == 1);
  out.emplace_back("services", std::move(services));
  out.emplace_back("rank_count", ranks.size());
  out.emplace_back("checks", checks_context(plan_, node));
  out.emplace_back("mpi", mpi_context(plan_, ranks));
  out.emplace_back("ranks", std::move(ranks));
  return out;
}

Result<std::string> NodeScripts::render(NodeIndex node) const {
  if (node.get() < 0 || node.get() >= static_cast<int>(plan_.nodes.size()))
    return fail(ErrorKind::internal, "there is no script for node {} of {}", node, plan_.nodes.size());
  const Json own = of_node(node);
  const std::array contexts{&shared_, &own};
  return script_.render(contexts, shell_quote);
}

Result<void> NodeScripts::check() const {
  const Json own = of_node(NodeIndex(0));
  const std::array contexts{&shared_, &own};
  return script_.check(contexts);
}

Result<Template> load_node_template(const std::filesystem::path& data) {
  const std::filesystem::path file = data / "templates" / "node.sh.tmpl";
  Template out = TRY(Template::parse(TRY(read_file(file)), file.string()));
  const Plan plan = example();
  TRY(NodeScripts(plan, out).check());
  return out;
}

Result<std::string> render_node_script(const Plan& plan, NodeIndex node, const Template& script) {
  return NodeScripts(plan, script).render(node);
}

}  // namespace dlrun::render
