#include "src/plan/container.hpp"

#include <array>

#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/plan/secrets.hpp"

namespace dlrun::plan {
namespace {

// The agent sets these when it starts a rank, so that the plan's own variables do not name them.
constexpr std::array<std::string_view, 2> kOfTheAgent{"DLRUN_CONTROL", "DLRUN_CHECKPOINT_REQUEST"};

// Apptainer has a prefix of its own for what wins over the image; shifter and sarus have values on their
// command lines only, where everybody can read them; the step of pyxis has its own SLURM_* variables.
std::string_view copy_prefix(const std::string& engine) {
  if (engine == "apptainer") return "APPTAINERENV_";
  if (engine == "singularity") return "SINGULARITYENV_";
  if (engine == "shifter" || engine == "sarus" || engine == "pyxis") return "DLRUN_SET_";
  return {};
}

// "PATH", "FROM:TO" or "FROM:TO:ro".
struct Mount {
  std::string from, to, options;
};

Mount mount_of(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  return {.from = parts[0],
          .to = parts.size() > 1 ? parts[1] : parts[0],
          .options = parts.size() > 2 ? parts[2] : ""};
}

std::vector<Mount> mounts_of(const Container& container, const ContainerUse& use) {
  std::vector<Mount> out;
  for (const std::string& folder : use.folders) out.push_back({folder, folder, {}});
  for (const std::string& text : container.mounts) out.push_back(mount_of(text));
  return out;
}

std::string colons(const Mount& mount) {
  return fmt::format("{}:{}{}", mount.from, mount.to, mount.options.empty() ? "" : ":" + mount.options);
}

// Images that are files are named like every file of a job; others have a registry's or a store's name.
std::string image_of(const Container& container, const std::filesystem::path& base) {
  const std::string& engine = container.engine;
  const bool apptainer = engine == "apptainer" || engine == "singularity";
  const bool file = (apptainer && container.image.find("://") == std::string::npos) ||
                    (engine == "charliecloud" && container.image.find('/') != std::string::npos) ||
                    ((engine == "enroot" || engine == "pyxis") && container.image.ends_with(".sqsh"));
  return file ? (base / container.image).lexically_normal().string() : container.image;
}

void add(Argv& out, const Argv& words) {
  out.insert(out.end(), words.begin(), words.end());
}

// AMD's libraries come from the host with a flag of their own; Intel's device files are there anyway.
Argv apptainer_gpus(const ContainerUse& use) {
  if (!use.gpus || use.gpu_vendor == GpuVendor::intel) return {};
  return {use.gpu_vendor == GpuVendor::amd ? "--rocm" : "--nv"};
}

Argv podman_gpus(const ContainerUse& use) {
  if (!use.gpus) return {};
  if (use.gpu_vendor == GpuVendor::amd) return {"--device=/dev/kfd", "--device=/dev/dri"};
  return {use.gpu_vendor == GpuVendor::intel ? "--device=/dev/dri" : "--device=nvidia.com/gpu=all"};
}

// The environment of the rank, its folder in /tmp, $HOME and inherited descriptors are there by themselves.
Argv apptainer(const Container& container, const ContainerUse& use, const std::string& image) {
  Argv out{container.engine, "exec"};
  add(out, apptainer_gpus(use));
  for (const Mount& mount : mounts_of(container, use)) add(out, {"--bind", colons(mount)});
  add(out, {"--pwd", use.working_directory, image});
  return out;
}

Argv podman(const Container& container, const ContainerUse& use, const std::string& image) {
  Argv out{"podman",
           "run",
           "--rm",
           "--network=host",
           "--ipc=host",
           "--pid=host",
           "--userns=keep-id",
           "--security-opt=label=disable"};
  add(out, podman_gpus(use));
  for (const std::string& name : use.variables) out.push_back("--env=" + name);
  for (const char* prefix : {"PMIX_*", "OMPI_*"}) out.push_back(fmt::format("--env={}", prefix));
  out.emplace_back("--volume=/tmp:/tmp");
  for (const Mount& mount : mounts_of(container, use)) out.push_back("--volume=" + colons(mount));
  add(out, {"--workdir=" + use.working_directory, image});
  return out;
}

// It mounts /tmp by itself. What it is to mount must be there in an image that is a folder.
Argv charliecloud(const Container& container, const ContainerUse& use, const std::string& image) {
  Argv out{"ch-run"};
  for (const Mount& mount : mounts_of(container, use))
    out.push_back(fmt::format("--bind={}:{}", mount.from, mount.to));
  add(out, {"--cd=" + use.working_directory, image, "--"});
  return out;
}

// It has no flag for the folder to start in.
Argv enroot(const Container& container, const ContainerUse& use, const std::string& image) {
  Argv out{"enroot", "start"};
  for (const std::string& name : use.variables) add(out, {"--env", name});
  if (use.gpus) add(out, {"--env", "NVIDIA_VISIBLE_DEVICES=all"});
  add(out, {"--mount", "/tmp:/tmp"});
  for (const Mount& mount : mounts_of(container, use)) add(out, {"--mount", mount.from + ":" + mount.to});
  add(out, {image, "sh", "-c", "cd -- \"$0\" && exec \"$@\"", use.working_directory});
  return out;
}

// The copies under their own names, and then the command that follows.
Argv with_copies(const ContainerUse& use) {
  if (use.copies.empty()) return {};
  std::string line = "export";
  for (const std::string& name : use.copies) line += fmt::format(" {0}=\"$DLRUN_SET_{0}\"", name);
  return {"sh", "-c", line + "; exec \"$0\" \"$@\""};
}

// A step of its own inside the step of the agent: the plug-in is srun's.
Argv pyxis(const Container& container, const ContainerUse& use, const std::string& image) {
  std::vector<std::string> mounts{"/tmp:/tmp"};
  for (const Mount& mount : mounts_of(container, use)) mounts.push_back(colons(mount));
  Argv out{"srun",
           "--overlap",
           "--nodes=1",
           "--ntasks=1",
           "--nodelist=" + use.host,
           "--mpi=none",
           "--cpu-bind=none",
           "--export=ALL",
           "--container-env=" + join(use.variables, ","),
           "--container-image=" + image,
           "--container-mounts=" + join(mounts, ","),
           "--container-workdir=" + use.working_directory};
  add(out, with_copies(use));
  return out;
}

Argv shifter(const Container& container, const ContainerUse& use, const std::string& image) {
  Argv out{"shifter", "--image=" + image};
  for (const Mount& mount : mounts_of(container, use))
    out.push_back(fmt::format("--volume={}:{}", mount.from, mount.to));
  out.push_back("--workdir=" + use.working_directory);
  add(out, with_copies(use));
  return out;
}

Argv sarus(const Container& container, const ContainerUse& use, const std::string& image) {
  Argv out{"sarus", "run"};
  std::vector<Mount> mounts{{"/tmp", "/tmp", {}}};
  for (const Mount& mount : mounts_of(container, use)) mounts.push_back(mount);
  for (const Mount& mount : mounts)
    out.push_back(fmt::format("--mount=type=bind,source={},destination={}{}", mount.from, mount.to,
                              mount.options == "ro" ? ",readonly" : ""));
  add(out, {"--workdir=" + use.working_directory, image});
  add(out, with_copies(use));
  return out;
}

tl::unexpected<Error> refused(const JobSpec& spec, std::string_view key, std::string what, std::string hint) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = std::move(what),
                    .where = place_of(spec, key),
                    .hint = std::move(hint)});
}

}  // namespace

Result<void> check_container(const JobSpec& spec, MpiProtocol mpi) {
  if (!spec.environment.container) return {};
  const Container& container = *spec.environment.container;
  if (spec.framework == "builtin")
    return refused(spec, "environment.container", "framework builtin does not run in a container",
                   "remove environment.container");
  for (const std::string& text : container.mounts) {
    const Mount mount = mount_of(text);
    const bool options = mount.options.empty() || mount.options == "ro" || mount.options == "rw";
    if (!mount.from.starts_with('/') || !mount.to.starts_with('/') || !options || split(text, ':').size() > 3)
      return refused(spec, "environment.container.mounts", fmt::format("'{}' is not a valid mount", text),
                     "write an absolute folder, or FROM:TO, or FROM:TO:ro");
  }
  if (container.engine == "podman" && mpi == MpiProtocol::pmi1)
    return refused(spec, "environment.container.engine",
                   "ranks of MPICH and Intel MPI need an open descriptor, which podman does not pass on",
                   "use apptainer or charliecloud, or Open MPI");
  return {};
}

void set_over_image(const Container& container, const EnvironmentRules& rules, EnvironmentChanges& changes) {
  const std::string prefix(copy_prefix(container.engine));
  if (prefix.empty()) return;
  const auto needs_copy = [&](const std::string& name) {
    const bool of_slurm = name.starts_with("SLURM_");
    if (container.engine == "pyxis") return of_slurm;          // --container-env does for the others
    if (of_slurm || name.starts_with("DLRUN_")) return false;  // no image has these
    return is_shell_identifier(name) && !is_secret(name, rules.secrets);
  };
  EnvironmentChanges copies;
  for (const auto& [name, value] : changes)
    if (needs_copy(name)) copies.emplace(prefix + name, value);
  changes.merge(copies);
}

Argv in_container(const Container& container, const std::filesystem::path& base, const ContainerUse& use,
                  const Argv& command) {
  ContainerUse with_agent = use;
  for (const std::string_view name : kOfTheAgent) with_agent.variables.emplace_back(name);
  const std::string image = image_of(container, base);
  const std::string& engine = container.engine;
  Argv out = engine == "podman"         ? podman(container, with_agent, image)
             : engine == "charliecloud" ? charliecloud(container, with_agent, image)
             : engine == "enroot"       ? enroot(container, with_agent, image)
             : engine == "pyxis"        ? pyxis(container, with_agent, image)
             : engine == "shifter"      ? shifter(container, with_agent, image)
             : engine == "sarus"        ? sarus(container, with_agent, image)
                                        : apptainer(container, with_agent, image);
  add(out, command);
  return out;
}

}  // namespace dlrun::plan
