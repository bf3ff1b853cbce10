// The table of schedulers, and the choice among its rows. It is explicit: the order is visible, and no
// scheduler can be lost by a linker.
#include "schedulers/cobalt/cobalt.hpp"
#include "schedulers/flux/flux.hpp"
#include "schedulers/gridengine/gridengine.hpp"
#include "schedulers/hostfile/scheduler.hpp"
#include "schedulers/local/local.hpp"
#include "schedulers/lsf/lsf.hpp"
#include "schedulers/oar/oar.hpp"
#include "schedulers/pbs/pbs.hpp"
#include "schedulers/scheduler.hpp"
#include "schedulers/slurm/slurm.hpp"
#include "schedulers/torque/torque.hpp"
#include "src/base/strings.hpp"

namespace dlrun {

// A host file is named explicitly, so it wins. Slurm is the first of the others: its wrappers set the
// variables of PBS as well. Torque comes before PBS, whose variables it shares.
const std::vector<Scheduler>& all_schedulers() {
  static const std::vector<Scheduler> table{
      hostfile_scheduler(),    //
      slurm_scheduler(),       //
      torque_scheduler(),      //
      pbs_scheduler(),         //
      lsf_scheduler(),         //
      flux_scheduler(),        //
      gridengine_scheduler(),  //
      oar_scheduler(),         //
      cobalt_scheduler(),      //
      local_scheduler(),
  };
  return table;
}

namespace {

// A job of one scheduler with another one's variables: a wrapper (Slurm's PBS look), or left over from a
// shell that the job was submitted from.
void note_others(const DiscoveryContext& context, Allocation& found) {
  for (const Scheduler& other : all_schedulers()) {
    if (other.name == found.scheduler || other.name == "local") continue;
    if (const std::string why = other.detect(context); !why.empty())
      found.evidence.push_back(
          fmt::format("{} too ({}): ignored; select it with --scheduler {}", why, other.name, other.name));
  }
}

Result<void> check_named_once(const DiscoveryContext& context, std::string_view wanted) {
  const Scheduler& hostfile = all_schedulers().front();
  const std::string named = hostfile.detect(context);
  if (named.empty() || wanted == "auto" || wanted == hostfile.name) return {};
  return fail(Error{
      .kind = ErrorKind::usage,
      .what = fmt::format("--scheduler {} and {} exclude each other: both set the nodes", wanted, named),
      .where = {},
      .hint = "give one of them"});
}

const Scheduler* detected_scheduler(const DiscoveryContext& context) {
  for (const Scheduler& scheduler : all_schedulers())
    if (!scheduler.detect(context).empty()) return &scheduler;
  return nullptr;
}

tl::unexpected<Error> unknown_scheduler(std::string_view wanted) {
  std::vector<std::string> names{"auto"};
  for (const Scheduler& scheduler : all_schedulers()) names.emplace_back(scheduler.name);
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("unknown scheduler '{}'", wanted),
                    .where = {},
                    .hint = did_you_mean(wanted, names)});
}

}  // namespace

const Scheduler* find_scheduler(std::string_view name) {
  for (const Scheduler& scheduler : all_schedulers()) {
    if (scheduler.name == name) return &scheduler;
    for (const std::string_view alias : scheduler.aliases)
      if (alias == name) return &scheduler;
  }
  return nullptr;
}

const Scheduler& scheduler_of(const Allocation& allocation) {
  const Scheduler* found = find_scheduler(allocation.scheduler);
  return found == nullptr ? all_schedulers().back() : *found;
}

std::string scheduler_title(std::string_view name) {
  const Scheduler* found = find_scheduler(name);
  return std::string(found == nullptr ? name : found->title);
}

std::string renamed_scheduler(std::string_view name, std::string_view flag) {
  const Scheduler* found = find_scheduler(name);
  if (found == nullptr || found->name == name) return {};
  return fmt::format("{}: {} is now called {}", flag, name, found->name);
}

Result<Allocation> find_allocation(const DiscoveryContext& context, std::string_view wanted) {
  TRY(check_named_once(context, wanted));
  const Scheduler* scheduler = wanted == "auto" ? detected_scheduler(context) : find_scheduler(wanted);
  if (scheduler == nullptr) return unknown_scheduler(wanted);
  Allocation found = TRY(scheduler->allocation(context));
  if (wanted == "auto") found.evidence.insert(found.evidence.begin(), scheduler->detect(context));
  if (const std::string renamed = renamed_scheduler(wanted, "--scheduler"); !renamed.empty())
    found.warnings.push_back(renamed);
  note_others(context, found);
  return found;
}

std::vector<EndQuestion> end_questions(std::string_view scheduler, const std::string& job_id) {
  const Scheduler* found = find_scheduler(scheduler);
  if (found == nullptr || found->end_questions == nullptr) return {};
  return found->end_questions(job_id);
}

std::vector<std::string> launcher_names() {
  std::vector<std::string> out{"local", "ssh", "mpiexec"};
  for (const Scheduler& scheduler : all_schedulers())
    if (scheduler.launcher != nullptr) out.emplace_back(scheduler.name);
  return out;
}

}  // namespace dlrun
