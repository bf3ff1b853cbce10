// --hostfile and --hosts as an allocation. An explicit list of hosts overrides every scheduler; without
// one, this scheduler is not used.
#include "schedulers/hostfile/scheduler.hpp"

#include <unistd.h>

#include "schedulers/hostfile/hostfile.hpp"
#include "src/base/file.hpp"
#include "src/base/named_file.hpp"

namespace dlrun {
namespace {

Result<HostEntries> read(const std::filesystem::path& path) {
  const bool piped = path == "-";
  const std::string name = piped ? "standard input" : path.string();
  auto text = piped ? read_all(STDIN_FILENO, name) : read_named_file(path);
  if (!text) {
    text.error().kind = ErrorKind::allocation;
    if (text.error().hint.empty()) text.error().hint = "--hostfile names a file with one host per line";
    return tl::unexpected(std::move(text.error()));
  }
  return read_hostfile(*text, name);
}

tl::unexpected<Error> usage(std::string what, std::string hint) {
  return fail(Error{.kind = ErrorKind::usage, .what = std::move(what), .hint = std::move(hint)});
}

std::string detect_hostfile(const DiscoveryContext& context) {
  if (context.named.hostfile) return "--hostfile " + context.named.hostfile->string();
  if (!context.named.host_words.empty()) return "--hosts " + context.named.host_words;
  return context.named.private_hostfile ? "--private-hostfile " + context.named.private_hostfile->string()
                                        : "";
}

Result<Allocation> hostfile_allocation(const DiscoveryContext& context) {
  if (context.named.hostfile && !context.named.host_words.empty())
    return usage("--hostfile and --hosts both name the hosts", "give one of them");
  if (!context.named.hostfile && context.named.host_words.empty())
    return usage("no host file is named", "--hostfile FILE, or --hosts a:2,b:2");
  HostEntries entries =
      TRY(context.named.hostfile ? read(*context.named.hostfile) : read_host_words(context.named.host_words));
  if (context.named.private_hostfile) {
    if (context.named.private_hostfile == "-" && context.named.hostfile == "-")
      return usage("standard input cannot be both host files", "write one of them to a file");
    TRY(add_addresses(entries, TRY(read(*context.named.private_hostfile))));
  }
  Allocation out = TRY(merge_entries(entries));
  for (std::string& warning : locality_warnings(out.nodes, context.machine_names()))
    out.warnings.push_back(std::move(warning));
  if (context.named.private_hostfile)
    out.evidence.push_back("private addresses: " + context.named.private_hostfile->string());
  out.evidence.emplace_back("a host file has no end time, and has cores and GPUs only as cpus= and gpus=");
  return out;
}

}  // namespace

Scheduler hostfile_scheduler() {
  return {
      .name = "hostfile", .title = "hostfile", .detect = detect_hostfile, .allocation = hostfile_allocation};
}

}  // namespace dlrun
