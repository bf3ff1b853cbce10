// See mapped_faults.hpp.
#include "runtime/base/mapped_faults.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <sys/uio.h>
#include <unistd.h>

#include "src/base/exit_code.hpp"

namespace dlrun::runtime {

// Never freed, since a handler may be reading it: a range that was forgotten is empty, and used again.
struct MappedRange {
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::size_t> size = 0;
  std::array<char, 1024> path{};
  MappedRange* next = nullptr;
};

namespace {

std::atomic<MappedRange*> all_ranges = nullptr;
std::mutex ranges_lock;

std::vector<MappedRange*>& free_ranges() {
  static std::vector<MappedRange*> out;
  return out;
}

struct sigaction& handler_before() {
  static struct sigaction out {};
  return out;
}

const MappedRange* range_of(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const MappedRange* one = all_ranges.load(std::memory_order_acquire); one != nullptr; one = one->next)
    if (const std::uintptr_t begin = one->begin; begin != 0 && at >= begin && at - begin < one->size)
      return one;
  return nullptr;
}

iovec piece(std::string_view text) {
  return {const_cast<char*>(text.data()), text.size()};
}

// Only what a handler may call.
[[noreturn]] void end_for(const MappedRange& range) {
  const std::array<iovec, 3> pieces = {
      piece("\ndlrun-train: error: "), piece(range.path.data()),
      piece(": cannot be read any more: it became shorter, or its file system failed, while it was in use\n"
            "  hint: leave data files as they are while a training reads them\n")};
  (void)!::writev(STDERR_FILENO, pieces.data(), pieces.size());
  ::_exit(to_int(exit_code(ErrorKind::input)));
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (const MappedRange* range = range_of(info->si_addr)) end_for(*range);
  const struct sigaction& before = handler_before();
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  ::signal(signal, SIG_DFL);  // the same access faults again, and ends the process
}

// An empty one, which a handler may already see.
MappedRange* take_range() {
  if (free_ranges().empty()) {
    auto* fresh = new MappedRange;
    fresh->next = all_ranges.load(std::memory_order_relaxed);
    all_ranges.store(fresh, std::memory_order_release);
    return fresh;
  }
  MappedRange* out = free_ranges().back();
  free_ranges().pop_back();
  return out;
}

}  // namespace

MappedRange* know_mapped_file(const void* begin, std::size_t size, const std::filesystem::path& path) {
  static const bool handled = (handle_mapped_faults(), true);
  (void)handled;
  const std::lock_guard lock(ranges_lock);
  MappedRange* range = take_range();
  const std::string& name = path.native();
  std::memset(range->path.data(), 0, range->path.size());
  std::memcpy(range->path.data(), name.data(), std::min(name.size(), range->path.size() - 1));
  range->size = size;
  range->begin = reinterpret_cast<std::uintptr_t>(begin);
  return range;
}

void forget_mapped_file(MappedRange* range) {
  if (range == nullptr) return;
  const std::lock_guard lock(ranges_lock);
  range->begin = 0;
  range->size = 0;
  free_ranges().push_back(range);
}

void handle_mapped_faults() {
  struct sigaction own {
  }, before{};
  own.sa_sigaction = on_fault;
  own.sa_flags = SA_SIGINFO;
  ::sigemptyset(&own.sa_mask);
  ::sigaction(SIGBUS, &own, &before);
  const bool was_ours = (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == on_fault;
  if (!was_ours) handler_before() = before;
}

}  // namespace dlrun::runtime
