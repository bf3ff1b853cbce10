#include "src/agent/stacks/python_stacks.hpp"

#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/process/child.hpp"
#include "src/process/command.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kPySpyLimit{3}, kWrites{2}, kPollInterval{0.03};
constexpr std::size_t kMaxFrames = 96;

Environment environment_of(pid_t pid) {
  return Environment::from_entries(split(read_file(fmt::format("/proc/{}/environ", pid)).value_or(""), '\0'));
}

// It does not stop the program: what it reads may then be torn, which it says by an error.
Result<StackFrames> ask_py_spy(pid_t pid, const std::string& program, const Environment& environment) {
  const CommandOutput output =
      TRY(run_command({.argv = {program, "dump", "--nonblocking", "--json", "--pid", std::to_string(pid)},
                       .environment = environment,
                       .working_directory = "/",
                       .limit = kPySpyLimit}));
  constexpr std::size_t max_shown = 200;
  if (!output.status.success())
    return fail(ErrorKind::unavailable, "py-spy: {}", trim(output.err).substr(0, max_shown));
  return frames_of_py_spy(output.out, pid);
}

struct Listener {
  fs::path file;
  int signal = 0;
};

std::optional<Listener> listener_of(pid_t pid, const std::string& folder) {
  std::error_code problem;
  const std::string prefix = fmt::format("python-{}-", pid);
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    if (const auto signal = parse_integer(name.substr(prefix.size()), 1, 64))
      return Listener{entry.path(), static_cast<int>(*signal)};
  }
  return std::nullopt;
}

// "SigCgt: 0000000180014a07": a program that has replaced itself since does not know the signal, which would
// end it.
bool takes(pid_t pid, int signal) {
  for (const std::string& line : split(read_file(fmt::format("/proc/{}/status", pid)).value_or(""), '\n'))
    if (line.starts_with("SigCgt:"))
      return ((std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1)) & 1U) != 0;
  return false;
}

// Until nothing more comes: faulthandler does not say where its text ends.
std::string text_behind(const fs::path& file, std::size_t known) {
  std::string text;
  for (Seconds waited{0}; waited < kWrites; waited += kPollInterval) {
    std::this_thread::sleep_for(kPollInterval);
    std::string now = read_file(file).value_or("");
    if (now.size() > known && now == text) break;
    text = std::move(now);
  }
  return text.size() > known ? text.substr(known) : std::string();
}

Result<StackFrames> ask_faulthandler(pid_t pid, const Listener& listener) {
  if (!takes(pid, listener.signal))
    return fail(ErrorKind::unavailable, "the program no longer takes signal {}", listener.signal);
  const std::size_t known = read_file(listener.file).value_or("").size();
  if (::syscall(SYS_tgkill, pid, pid, listener.signal) != 0)
    return fail(ErrorKind::unavailable, "the program takes no signal");
  StackFrames out = frames_of_faulthandler(text_behind(listener.file, known));
  if (out.empty()) return fail(ErrorKind::unavailable, "Python did not write its stack in time");
  return out;
}

// Before Python 3.11, py-spy cannot tell the kernel's numbers of threads while they run. Their names are then
// Python's, and the first thread is the last of the list.
const Json* first_thread(const Json& threads, pid_t pid) {
  const Json* named = nullptr;
  bool numbered = false;
  for (const Json& thread : threads) {
    const auto number = field<std::int64_t>(thread, "os_thread_id", "py-spy");
    if (number && *number == pid) return &thread;
    numbered = numbered || number;
    if (field<std::string>(thread, "thread_name", "py-spy").value_or("") == "MainThread") named = &thread;
  }
  if (threads.empty() || (numbered && threads.size() > 1)) return nullptr;
  return named != nullptr ? named : &threads.back();
}

}  // namespace

bool is_python_program(pid_t pid) {
  std::error_code problem;
  const fs::path program = fs::read_symlink(fmt::format("/proc/{}/exe", pid), problem);
  return program.filename().string().starts_with("python");
}

void read_python_stack(RankStack& stack, const std::string& folder) {
  const Environment environment = environment_of(stack.pid);
  const auto py_spy = find_program("py-spy", environment, "/");
  const auto listener = listener_of(stack.pid, folder);
  if (!py_spy && !listener) {
    stack.problems.emplace_back(
        "no Python functions: py-spy is not on its PATH, and it does not use dlrun_client");
    return;
  }
  auto frames = py_spy ? ask_py_spy(stack.pid, *py_spy, environment) : ask_faulthandler(stack.pid, *listener);
  if (!frames && py_spy && listener) frames = ask_faulthandler(stack.pid, *listener);
  if (frames)
    stack.python = std::move(*frames);
  else
    stack.problems.push_back("no Python functions: " + frames.error().what);
}

Result<StackFrames> frames_of_py_spy(std::string_view text, pid_t pid) {
  const Json threads = TRY(parse_json(text, "py-spy"));
  if (!threads.is_array()) return fail(ErrorKind::input, "py-spy: its answer is no list");
  const Json* const thread = first_thread(threads, pid);
  if (thread == nullptr) return fail(ErrorKind::input, "py-spy: the first thread is not in its answer");
  StackFrames out;
  for (const Json& frame : TRY(field<Json>(*thread, "frames", "py-spy")))
    if (out.size() < kMaxFrames)
      out.push_back({TRY(field<std::string>(frame, "name", "py-spy")),
                     fmt::format("{}:{}", TRY(field<std::string>(frame, "filename", "py-spy")),
                                 field<int>(frame, "line", "py-spy").value_or(0))});
  return out;
}

// "Current thread 0x7f (most recent call first):", then '  File "x.py", line 3 in read_batch'.
StackFrames frames_of_faulthandler(std::string_view text) {
  StackFrames out;
  bool current = false;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("Current thread")) {
      current = true;
      continue;
    }
    if (!current || out.size() == kMaxFrames) continue;
    const std::size_t open = line.find("File \""), close = line.rfind("\", line "), in = line.rfind(" in ");
    if (open == std::string::npos || close == std::string::npos || in == std::string::npos || in < close)
      break;
    const std::size_t number = close + 8;
    out.push_back({line.substr(in + 4),
                   line.substr(open + 6, close - open - 6) + ":" + line.substr(number, in - number)});
  }
  return out;
}

}  // namespace dlrun::agent
