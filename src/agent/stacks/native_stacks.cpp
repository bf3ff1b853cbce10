#include "src/agent/stacks/native_stacks.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <cxxabi.h>

#include "src/agent/stacks/stopped_thread.hpp"
#include "src/agent/stacks/unwind_table.h"
#include "src/base/install.hpp"
#include "src/base/shared_library.hpp"
#include "src/base/units.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxThreads = 256, kMaxDifferent = 16, kMaxName = 160;

std::string readable(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return std::string(demangled ? demangled.get() : name).substr(0, kMaxName);
}

void add_frame(void* context, const char* function, const char* file) {
  static_cast<StackFrames*>(context)->push_back(
      {*function != '\0' ? readable(function) : "?", fs::path(file).filename().string()});
}

// The first one first; the others in the order of their numbers.
std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> out;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/task", process), problem))
    if (const auto number = parse_integer(entry.path().filename().string(), 1, 1 << 30))
      out.push_back(static_cast<pid_t>(*number));
  std::sort(out.begin(), out.end(),
            [&](pid_t a, pid_t b) { return std::pair(a != process, a) < std::pair(b != process, b); });
  return out;
}

class Unwinder {
 public:
  static Result<Unwinder> open(pid_t process) {
    const Installation own = TRY(this_installation());
    std::error_code problem;
    const fs::path file = own.plugins / "libdlrun-unwind.so";
    if (!fs::exists(file, problem))
      return fail(ErrorKind::unavailable, "dlrun was built without elfutils (libdw): no native functions");
    SharedLibrary library = TRY(SharedLibrary::open(file));
    const auto* table = TRY(library.symbol<const DlrunUnwindTable>(DLRUN_UNWIND_SYMBOL));
    if (table->version != DLRUN_UNWIND_VERSION)
      return fail(ErrorKind::unavailable, "{} is of another version of dlrun", file.string());
    const char* why = "";
    void* handle = table->open(process, &why);
    if (handle == nullptr) return fail(ErrorKind::unavailable, "its memory map cannot be read: {}", why);
    return Unwinder(std::move(library), table, handle);
  }

  Result<StackFrames> frames(pid_t thread) const {
    const StoppedThread stopped = TRY(StoppedThread::stop(thread));
    StackFrames out;
    const char* why = table_->frames(handle_.get(), thread, add_frame, &out);
    if (why != nullptr) return fail(ErrorKind::unavailable, "its stack cannot be read: {}", why);
    return out;
  }

 private:
  Unwinder(SharedLibrary library, const DlrunUnwindTable* table, void* handle)
      : library_(std::move(library)), table_(table), handle_(handle, table->close) {}

  SharedLibrary library_;
  const DlrunUnwindTable* table_;
  std::unique_ptr<void, void (*)(void*)> handle_;
};

}  // namespace

std::vector<ThreadStack> merged(std::vector<StackFrames> threads) {
  std::vector<ThreadStack> out;
  for (StackFrames& frames : threads) {
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const ThreadStack& each) { return each.frames == frames; });
    same == out.end() ? out.push_back({1, std::move(frames)}) : void(++same->count);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const ThreadStack& a, const ThreadStack& b) { return a.count > b.count; });
  if (out.size() > kMaxDifferent) out.resize(kMaxDifferent);
  return out;
}

// What holds for one thread mostly holds for all: the first reason is told.
void read_native_stacks(RankStack& stack) {
  const auto unwinder = Unwinder::open(stack.pid);
  if (!unwinder) return stack.problems.push_back(unwinder.error().what);
  std::vector<pid_t> threads = threads_of(stack.pid);
  if (threads.size() > kMaxThreads) threads.resize(kMaxThreads);
  std::vector<StackFrames> others;
  for (const pid_t thread : threads) {
    auto frames = unwinder->frames(thread);
    if (!frames && thread == stack.pid) {
      stack.problems.push_back(frames.error().what);
      if (threads.size() == 1) return;
      continue;
    }
    if (!frames) continue;
    thread == stack.pid ? void(stack.native = std::move(*frames)) : others.push_back(std::move(*frames));
  }
  stack.threads = merged(std::move(others));
}

}  // namespace dlrun::agent
