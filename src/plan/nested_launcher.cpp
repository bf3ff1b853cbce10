#include "src/plan/nested_launcher.hpp"

#include <algorithm>
#include <array>

namespace dlrun::plan {
namespace {

enum class Starts { job, node };

struct KnownLauncher {
  std::string_view program;  // or the module that Python runs
  Starts starts;             // the processes of the whole job, or those of one node
  std::string_view hint;     // the adapters to use
};

constexpr std::string_view kMpi = "framework: mpi and the program alone (framework: mpiexec to keep mpirun)";
constexpr std::string_view kTorch =
    "framework: pytorch-torchrun (one torchrun per node) or framework: pytorch, with the command of one "
    "process (python train.py)";
constexpr std::string_view kAccelerate =
    "framework: accelerate, with the command of one process (python train.py)";
constexpr std::string_view kDeepSpeed =
    "framework: deepspeed-launcher or deepspeed, with the command of one process (python train.py)";
constexpr std::string_view kHorovod =
    "framework: horovod or horovod-gloo, with the command of one process (python train.py)";
constexpr std::string_view kStep = "the program alone: dlrun starts the ranks itself";

constexpr std::array<KnownLauncher, 17> kLaunchers{{{"torchrun", Starts::node, kTorch},
                                                    {"torch.distributed.run", Starts::node, kTorch},
                                                    {"torch.distributed.launch", Starts::node, kTorch},
                                                    {"accelerate", Starts::node, kAccelerate},
                                                    {"accelerate.commands.launch", Starts::node, kAccelerate},
                                                    {"deepspeed", Starts::job, kDeepSpeed},
                                                    {"deepspeed.launcher.runner", Starts::job, kDeepSpeed},
                                                    {"horovodrun", Starts::job, kHorovod},
                                                    {"horovod.runner", Starts::job, kHorovod},
                                                    {"mpirun", Starts::job, kMpi},
                                                    {"mpiexec", Starts::job, kMpi},
                                                    {"orterun", Starts::job, kMpi},
                                                    {"prterun", Starts::job, kMpi},
                                                    {"srun", Starts::job, kStep},
                                                    {"aprun", Starts::job, kStep},
                                                    {"jsrun", Starts::job, kStep},
                                                    {"flux", Starts::job, kStep}}};

std::string file_name(const std::string& word) {
  return word.substr(word.rfind('/') + 1);
}

// MODULE of `python [OPTIONS] -m MODULE`; empty where Python runs something else.
std::string module_of(const Argv& command) {
  if (!file_name(command.front()).starts_with("python")) return {};
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == "-m") return i + 1 < command.size() ? command[i + 1] : std::string();
    if (word == "-X" || word == "-W") ++i;  // their value
    if (!word.starts_with('-')) return {};
  }
  return {};
}

const KnownLauncher* find_launcher(const Argv& command) {
  if (command.empty()) return nullptr;
  const std::string module = module_of(command);
  std::string name = module.empty() ? file_name(command.front()) : module;
  for (const std::string_view end : {".openmpi", ".mpich", ".hydra"})  // Debian's names, MPICH's own
    if (name.starts_with("mpi") && name.ends_with(end)) name.resize(name.size() - end.size());
  const std::string second = command.size() > 1 ? command[1] : std::string();
  if (name == "accelerate" && second != "launch") return nullptr;
  if (name == "flux" && second != "run") return nullptr;
  const auto found = std::find_if(kLaunchers.begin(), kLaunchers.end(),
                                  [&](const KnownLauncher& known) { return known.program == name; });
  return found == kLaunchers.end() ? nullptr : &*found;
}

// Without framework, dlrun is a plain way to have a command run on nodes: that is the user's own arrangement.
bool may_run(const KnownLauncher& launcher, const Adapter& adapter, const Plan& plan) {
  if (adapter.name != "plain") return false;
  return launcher.starts == Starts::node ? plan.ranks.size() <= plan.nodes.size() : plan.ranks.size() == 1;
}

}  // namespace

std::string launcher_in(const Argv& command) {
  if (find_launcher(command) == nullptr) return {};
  const std::string module = module_of(command);
  return module.empty() ? file_name(command.front()) : fmt::format("python -m {}", module);
}

Result<void> check_nested_launcher(const JobSpec& spec, const Adapter& adapter, const Plan& plan) {
  const KnownLauncher* launcher = find_launcher(spec.command);
  if (launcher == nullptr || may_run(*launcher, adapter, plan)) return {};
  const bool once = adapter.process != ProcessModel::per_rank;
  return fail(Error{.kind = ErrorKind::input,
                    .what = once
                                ? fmt::format("the command starts with '{}', and framework {} starts its own "
                                              "launcher",
                                              launcher_in(spec.command), adapter.name)
                                : fmt::format("the command is the launcher '{}', and framework {} would "
                                              "start it once per rank (ranks: {})",
                                              launcher_in(spec.command), adapter.name, plan.ranks.size()),
                    .where = place_of(spec, "command"),
                    .hint = fmt::format("use {}", launcher->hint)});
}

}  // namespace dlrun::plan
