#include "src/launch/stage.hpp"

#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/process/command.hpp"

namespace dlrun::launch {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kTarLimit{300};

// The plug-ins that this plan's agents and ranks will look for, and the libraries that the installation
// brings.
std::vector<std::string> libraries_for(const plan::Plan& plan, const Installation& own) {
  std::vector<std::string> out;
  if (plan.mpi == plan::MpiProtocol::pmix) out.emplace_back("libdlrun-pmix.so");
  out.emplace_back("libdlrun-unwind.so");
  if (plan.framework != "builtin") return out;
  out.insert(out.end(), {kOpenMpiPlugin, "libdlrun-cuda.so"});
  out.insert(out.end(), kMpichPlugins.begin(), kMpichPlugins.end());
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(own.plugins / kBesideFolder, problem))
    out.push_back(fs::path(kBesideFolder) / entry.path().filename());
  return out;
}

}  // namespace

std::vector<StagedFile> files_to_stage(const plan::Plan& plan, const Installation& own) {
  std::vector<StagedFile> out{{own.agent(), "bin/dlrun-agent"}};
  if (plan.framework == "builtin") out.push_back({own.bin / "dlrun-train", "bin/dlrun-train"});
  std::error_code problem;
  for (const std::string& name : libraries_for(plan, own))
    if (fs::exists(own.plugins / name, problem)) out.push_back({own.plugins / name, "lib/dlrun/" + name});
  return out;
}

Result<void> write_archive(const std::vector<StagedFile>& files, const std::string& path,
                           const Environment& environment) {
  Argv argv{"tar",           "--create",  "--gzip",    "--dereference",
            "--force-local", "--owner=0", "--group=0", "--file=" + path};
  for (const StagedFile& file : files) {
    argv.push_back(fmt::format("--transform=s,^{}$,{},", file.from.filename().string(), file.to));
    argv.insert(argv.end(), {"-C", file.from.parent_path().string(), file.from.filename().string()});
  }
  const Result<CommandOutput> output =
      run_command({.argv = argv, .environment = environment, .working_directory = "/", .limit = kTarLimit});
  if (output && output->status.success()) return {};
  std::error_code left;
  fs::remove(path, left);
  if (!output) return fail(output.error());
  return fail({.kind = ErrorKind::unavailable,
               .what = "dlrun cannot be packed for --stage: " + std::string(trim(output->err)),
               .hint = "GNU tar and gzip are needed here; or install dlrun on the nodes and omit --stage"});
}

// The lock goes last: whoever is killed before that leaves a folder that the next agent knows to be
// abandoned. Signals are for the agent, which gets them too: the shell only outlives it. They are not
// ignored, since that would be handed on.
std::string run_copy(std::string_view source, std::string_view arguments) {
  return fmt::format(
      "d=$(mktemp -d \"${{TMPDIR:-/tmp}}/dlrun-$(id -u)-XXXXXX\") || exit {0}; trap : HUP INT TERM; "
      "if {1} | tar -xzf - -C \"$d\"; then \"$d/bin/dlrun-agent\" --hold \"$d\"{2}; c=$?; else c={0}; fi; "
      "rm -rf \"$d/bin\" \"$d/lib\"; rm -rf \"$d\"; exit $c",
      kNotStaged, source, arguments);
}

std::string stage_script(const std::string& program, const std::string& archive) {
  return fmt::format(
      "# Started on each node by dlrun --stage: dlrun where it is, else a copy that ends with the agent.\n"
      "p={}\n"
      "if [ -x \"$p\" ]; then exec \"$p\" \"$@\"; fi\n"
      "{}\n",
      shell_quote(program), run_copy("cat " + shell_quote(archive), " \"$@\""));
}

}  // namespace dlrun::launch
