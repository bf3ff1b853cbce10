// --hostfile and --hosts as an allocation. What the user names explicitly wins over every scheduler; nothing
// is looked for where nothing is named.
#include "schedulers/scheduler.hpp"

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

class Hostfile final : public Scheduler {
 public:
  std::string_view name() const override { return "hostfile"; }

  std::string inside(const Surroundings& surroundings) const override {
    if (surroundings.named.hostfile) return "--hostfile " + surroundings.named.hostfile->string();
    if (!surroundings.named.host_words.empty()) return "--hosts " + surroundings.named.host_words;
    return surroundings.named.private_hostfile
               ? "--private-hostfile " + surroundings.named.private_hostfile->string()
               : "";
  }

  Result<Allocation> allocation(const Surroundings& surroundings) const override {
    if (surroundings.named.hostfile && !surroundings.named.host_words.empty())
      return usage("--hostfile and --hosts both name the hosts", "give one of them");
    if (!surroundings.named.hostfile && surroundings.named.host_words.empty())
      return usage("no host file is named", "--hostfile FILE, or --hosts a:2,b:2");
    HostEntries entries = TRY(surroundings.named.hostfile ? read(*surroundings.named.hostfile)
                                                          : read_host_words(surroundings.named.host_words));
    if (surroundings.named.private_hostfile) {
      if (surroundings.named.private_hostfile == "-" && surroundings.named.hostfile == "-")
        return usage("standard input cannot be both host files", "write one of them to a file");
      TRY(add_addresses(entries, TRY(read(*surroundings.named.private_hostfile))));
    }
    Allocation out = TRY(merge_entries(entries));
    for (std::string& warning : locality_warnings(out.nodes, surroundings.machine_names()))
      out.warnings.push_back(std::move(warning));
    if (surroundings.named.private_hostfile)
      out.evidence.push_back("private addresses: " + surroundings.named.private_hostfile->string());
    out.evidence.emplace_back("a host file tells no end time, and cores and GPUs only by cpus= and gpus=");
    return out;
  }

 private:
  static tl::unexpected<Error> usage(std::string what, std::string hint) {
    return fail(Error{.kind = ErrorKind::usage, .what = std::move(what), .hint = std::move(hint)});
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_hostfile_scheduler() {
  return std::make_unique<Hostfile>();
}

}  // namespace dlrun
