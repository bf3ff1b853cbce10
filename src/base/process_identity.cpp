#include "src/base/process_identity.hpp"

#include <cerrno>
#include <csignal>
#include <optional>

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/host_name.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

constexpr long kXfsMagic = 0x58465342, kZfsMagic = 0x2fc12fc1;  // not in magic.h

std::string first_line(const char* file) {
  return std::string(trim(read_file(file).value_or("")));
}

std::string own_namespace() {
  std::error_code problem;
  return std::filesystem::read_symlink("/proc/self/ns/pid", problem).string();
}

struct KernelEntry {
  char state = '?';
  std::uint64_t started = 0;
};

// "pid (name) S ppid ... start time": the name may hold blanks and brackets, so the last ')' counts.
std::optional<KernelEntry> kernel_entry(std::int64_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t close = text ? text->rfind(')') : std::string::npos;
  if (close == std::string::npos || close + 2 >= text->size()) return std::nullopt;
  const auto words = split(std::string_view(*text).substr(close + 2), ' ');
  const auto started =
      words.size() > 19 ? parse_integer(words[19], 0, INT64_MAX) : Result<std::int64_t>(fail(Error{}));
  if (!started) return std::nullopt;
  return KernelEntry{words[0].empty() ? '?' : words[0][0], static_cast<std::uint64_t>(*started)};
}

// Those that only one kernel mounts. What is not known counts as shared.
bool is_of_one_kernel(const std::filesystem::path& folder) {
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) return false;
  for (const long local : {long{TMPFS_MAGIC}, long{EXT4_SUPER_MAGIC}, kXfsMagic, long{BTRFS_SUPER_MAGIC},
                           long{OVERLAYFS_SUPER_MAGIC}, long{F2FS_SUPER_MAGIC}, kZfsMagic})
    if (static_cast<long>(status.f_type) == local) return true;
  return false;
}

}  // namespace

ProcessIdentity this_process() {
  const auto entry = kernel_entry(::getpid());
  return {.host = host_name(),
          .boot = first_line("/proc/sys/kernel/random/boot_id"),
          .namespace_ = own_namespace(),
          .pid = ::getpid(),
          .started = entry ? entry->started : 0};
}

Life life_of(const ProcessIdentity& process) {
  const ProcessIdentity here = this_process();
  if (process.pid <= 0 || process.boot.empty() || process.boot != here.boot || process.namespace_.empty() ||
      process.namespace_ != here.namespace_)
    return Life::unknown;
  if (::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return Life::ended;
  const auto entry = kernel_entry(process.pid);
  if (!entry) return Life::alive;  // it may be hidden from us, as another user's is
  const bool same = entry->started == process.started && entry->state != 'Z' && entry->state != 'X';
  return same ? Life::alive : Life::ended;
}

Life life_of(const ProcessIdentity& process, const std::filesystem::path& wrote_in) {
  const Life life = life_of(process);
  if (life != Life::unknown || process.boot.empty()) return life;
  const std::string boot = this_process().boot;
  return !boot.empty() && process.boot != boot && is_of_one_kernel(wrote_in) ? Life::ended : life;
}

Json to_json(const ProcessIdentity& process) {
  return Json{{"host", process.host},
              {"boot", process.boot},
              {"namespace", process.namespace_},
              {"pid", process.pid},
              {"started", process.started}};
}

Result<ProcessIdentity> process_identity_from_json(const Json& json, std::string_view where) {
  ProcessIdentity out;
  out.host = TRY(field<std::string>(json, "host", where));
  out.boot = TRY(field<std::string>(json, "boot", where));
  out.namespace_ = TRY(field<std::string>(json, "namespace", where));
  out.pid = TRY(field<std::int64_t>(json, "pid", where));
  out.started = TRY(field<std::uint64_t>(json, "started", where));
  return out;
}

}  // namespace dlrun
