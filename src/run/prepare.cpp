#include "src/run/prepare.hpp"

#include <algorithm>

#include <unistd.h>

#include "schedulers/allocation_file.hpp"
#include "schedulers/node_identity.hpp"
#include "src/agent/memory_nodes.hpp"
#include "src/base/state_folder.hpp"
#include "src/base/strings.hpp"
#include "src/plan/hypothetical_nodes.hpp"
#include "src/plan/make_plan.hpp"
#include "src/plan/nested_launcher.hpp"
#include "src/plan/node_inventory.hpp"
#include "src/plan/node_range.hpp"
#include "src/plan/secrets.hpp"
#include "src/process/child.hpp"
#include "src/process/mpi_flavour.hpp"
#include "src/run/trainer_protocol.hpp"
#include "src/run/tuned_threads.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

fs::path user_configuration(const Environment& environment) {
  return user_folder(environment, "XDG_CONFIG_HOME", ".config").value_or("/nonexistent/.config/dlrun");
}

std::string preview_id(const Allocation& allocation) {
  return allocation.job_id ? "preview-" + plan::as_job_name(*allocation.job_id) : "preview";
}

// The nodes asked for, where this machine alone is not enough and only a look at the plan is wanted.
void assume_nodes(const plan::JobSpec& spec, Allocation& allocation) {
  const plan::Resources& asked = spec.resources;
  if (allocation.scheduler != "local" || !asked.nodes) return;
  const auto& gpus = allocation.nodes.front().gpus;
  const bool enough =
      *asked.nodes == 1 && static_cast<int>(gpus ? gpus->size() : 0) >= asked.gpus_per_node.value_or(0);
  if (!enough) allocation = plan::hypothetical_allocation(*asked.nodes, asked.gpus_per_node);
}

// Of a program that may be no MPI program: none unless it is linked to one.
plan::MpiProtocol linked_mpi(const Request& request, const Prepared& job, const fs::path& directory) {
  Environment environment = request.environment;
  environment.merge(job.spec.environment.set);
  if (job.spec.command.empty() || job.spec.environment.container) return plan::MpiProtocol::none;
  if (!plan::launcher_in(job.spec.command).empty())
    return plan::MpiProtocol::none;  // mpirun links an MPI, too
  const auto program = find_program(job.spec.command.front(), environment, directory.string());
  if (!program) return plan::MpiProtocol::none;
  const MpiFlavour flavour = mpi_flavour(*program, environment).value_or(MpiFlavour::unknown);
  return flavour == MpiFlavour::openmpi ? plan::MpiProtocol::pmix
         : flavour == MpiFlavour::mpich ? plan::MpiProtocol::pmi1
                                        : plan::MpiProtocol::none;
}

// What the job's program speaks, where nobody has said it. Our own trainer takes what is there.
Result<std::optional<plan::MpiProtocol>> detect(const Request& request, const Prepared& job,
                                                const fs::path& directory) {
  const std::string requested = plan::requested_mpi(job.spec, job.adapter);
  if (requested == "detect") return linked_mpi(request, job, directory);
  if (requested != "auto") return std::nullopt;
  Environment environment = request.environment;
  environment.merge(job.spec.environment.set);
  if (!job.adapter.command.empty()) {
    const std::size_t nodes = plan::nodes_taken(job.spec.resources, job.allocation.nodes.size())
                                  .value_or(job.allocation.nodes.size());
    return trainer_protocol(nodes, request.installation, environment);
  }
  if (job.spec.command.empty()) return std::nullopt;
  // A program that is not there yet (a module brings it) is found missing when its rank starts.
  const auto program = find_program(job.spec.command.front(), environment, directory.string());
  if (!program) return plan::MpiProtocol::pmix;
  return TRY(mpi_flavour(*program, environment)) == MpiFlavour::mpich ? plan::MpiProtocol::pmi1
                                                                      : plan::MpiProtocol::pmix;
}

// A node that is this machine tells now whether it has the NUMA nodes; others do when their ranks start.
Result<void> check_memory(const Prepared& job) {
  const plan::MemoryPolicy& policy = job.plan.memory;
  if (policy.numa.empty() || !is_digit(policy.numa.front())) return {};
  const MachineNames machine = this_machine();
  const bool is_here =
      job.allocation.scheduler == "local" ||
      std::any_of(job.plan.nodes.begin(), job.plan.nodes.end(),
                  [&](const plan::NodePlan& node) { return is_machine(node.host.get(), machine); });
  if (!is_here || job.plan.hypothetical_nodes) return {};
  auto binding = agent::memory_binding(policy, {});
  if (binding) return {};
  binding.error().where = plan::place_of(job.spec, "launch.memory");
  return fail(std::move(binding).error());
}

}  // namespace

Result<void> add_configuration_files(plan::JobSources& sources, const std::string& site_name,
                                     const Environment& environment, const Installation& installation) {
  if (site_name != "none")
    sources.site = TRY(plan::choose_site(TRY(plan::all_sites(installation.data)), site_name, environment,
                                         this_machine().names));
  std::error_code problem;
  const fs::path site = installation.data / "dlrun.yaml",
                 user = user_configuration(environment) / "dlrun.yaml";
  if (fs::exists(site, problem)) sources.site_file = site;
  if (fs::exists(user, problem)) sources.user_file = user;
  return {};
}

std::string new_job_id(Instant now) {
  std::string stamp = format_utc(std::chrono::floor<std::chrono::seconds>(now));
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':' || c == 'Z'; });
  std::replace(stamp.begin(), stamp.end(), 'T', '-');
  return fmt::format(
      "{}-{:04x}", stamp,
      (static_cast<unsigned>(::getpid()) ^ static_cast<unsigned>(now.time_since_epoch().count() << 8)) &
          0xffff);
}

plan::AdapterPath adapters_of(const Request& request) {
  return plan::adapter_path(request.framework_dir, user_configuration(request.environment),
                            request.installation.data);
}

Result<Allocation> allocation_of(const Request& request) {
  if (request.allocation) return *request.allocation;
  if (!request.allocation_file) {
    const SystemCommands commands;
    const SystemClock clock;
    const DiscoveryContext discovery{request.environment, commands, clock,
                                     [&] { return gpus_of_driver(request.environment); },
                                     request.named_hosts};
    return find_allocation(discovery, request.scheduler);
  }
  return allocation_from_file(*request.allocation_file);
}

Result<plan::JobSpec> job_spec_of(const Request& request) {
  if (request.spec) return *request.spec;
  return plan::load_job(request.sources, request.here);
}

Result<Prepared> prepare(const Request& request, Instant now) {
  Prepared job;
  job.spec = TRY(job_spec_of(request));
  job.tree = job.spec.tree;
  job.site = request.sources.site;
  job.allocation = TRY(allocation_of(request));
  if (request.missing_nodes == MissingNodes::invent && !request.allocation_file)
    assume_nodes(job.spec, job.allocation);
  job.adapter = TRY(
      plan::find_adapter(adapters_of(request), job.spec.framework, plan::place_of(job.spec, "framework")));
  for (const std::string& warning : job.adapter.warnings)
    job.spec.warnings.push_back(fmt::format("{}: {}", job.adapter.source, warning));
  plan::PlanInput& input = job.input;
  input.spec = job.spec;
  input.allocation = plan::with_stand_ins(job.allocation, job.spec);
  input.adapter = job.adapter;
  input.job_id = request.preview ? preview_id(job.allocation) : new_job_id(now);
  input.installation = request.installation;
  input.environment = plan::filter_environment(request.environment, job.spec.environment.rules);
  const fs::path runs = request.here / "runs" / fmt::format("{}-{}", job.spec.name, input.job_id);
  input.run_directory = request.run_directory ? fs::absolute(*request.run_directory).string() : runs.string();
  input.working_directory = request.sources.job_file ? "" : request.here.string();
  const fs::path directory = request.sources.job_file ? job.spec.base_directory : request.here;
  input.detected_mpi = TRY(detect(request, job, directory));
  input.tuned_threads = tuned_threads_of(job.allocation, request.environment);
  input.tuned_by_model = TunedThreads(request.environment).all();
  job.plan = TRY(plan::make_plan(input));
  TRY(check_memory(job));
  return job;
}

}  // namespace dlrun::job
