#include "src/cli/host_options.hpp"

namespace dlrun::cli {
namespace {

constexpr std::string_view kRefusal = "the scheduler chooses the nodes of a submitted job";

constexpr FlagRow<HostOptions> kHostFlags[] = {
    {{.name = "--hostfile",
      .value = "FILE",
      .help = "use the hosts of this file; - for standard input",
      .on_submit = OnSubmit::refused,
      .refusal = kRefusal,
      .excludes = "--allocation"},
     &HostOptions::hostfile},
    {{.name = "--private-hostfile",
      .value = "FILE",
      .help = "the address by which ranks reach each host of --hostfile",
      .on_submit = OnSubmit::refused,
      .refusal = kRefusal,
      .excludes = "--allocation"},
     &HostOptions::private_hostfile},
    {{.name = "--hosts",
      .value = "LIST",
      .help = "use these hosts: a:2,b:2 or n[1-4]:8",
      .on_submit = OnSubmit::refused,
      .refusal = kRefusal,
      .excludes = "--allocation --hostfile"},
     &HostOptions::hosts},
};

}  // namespace

NamedHosts HostOptions::named() const {
  NamedHosts out;
  if (!hostfile.empty()) out.hostfile = hostfile;
  if (!private_hostfile.empty()) out.private_hostfile = private_hostfile;
  out.host_words = hosts;
  return out;
}

std::span<const FlagRow<HostOptions>> host_flags() {
  return kHostFlags;
}

}  // namespace dlrun::cli
