#include "src/process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/base/uncaught.hpp"
#include "src/base/unique_fd.hpp"
#include "src/process/close_on_exec.hpp"

namespace dlrun {
namespace {

// What the child needs, prepared before the fork: between vfork and exec nothing may allocate or lock.
struct ChildSetup {
  const char* program;
  char* const* argv;
  char* const* environment;
  const char* working_directory;  // nullptr: stay
  int stdio[3];
  const int* inherited;
  std::size_t inherited_count;
  const cpu_set_t* processors;  // nullptr: stay
  int memory_policy;            // of the kernel; 0: stay
  const unsigned long* memory_nodes;
  unsigned long memory_bits;
  bool die_with_parent, ignore_user_signals, close_others;
  const rlimit* open_files;  // nullptr: stay
  pid_t parent;
  const char* failed_call;  // written by the child: vfork shares our memory
  int failed_errno;
};

[[noreturn]] void give_up(ChildSetup& prepared, const char* call) {
  prepared.failed_errno = errno;
  prepared.failed_call = call;
  ::_exit(127);
}

// stdio[i] onto i. The sources were moved above 2 beforehand, so no dup2 destroys one that is still needed.
void place_stdio(ChildSetup& prepared) {
  for (int i = 0; i < 3; ++i)
    if (::dup2(prepared.stdio[i], i) < 0) give_up(prepared, "dup2");
}

void reset_signals(bool ignore_user_signals) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number)
    if (number != SIGKILL && number != SIGSTOP) ::sigaction(number, &standard, nullptr);
  if (ignore_user_signals)
    for (const int number : {SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become(ChildSetup& prepared) {
  ::setsid();
  if (prepared.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != prepared.parent) ::_exit(127);  // the parent died before the prctl
  }
  if (prepared.open_files != nullptr && ::setrlimit(RLIMIT_NOFILE, prepared.open_files) != 0)
    give_up(prepared, "setrlimit");
  if (prepared.processors != nullptr && ::sched_setaffinity(0, sizeof(cpu_set_t), prepared.processors) != 0)
    give_up(prepared, "sched_setaffinity");
  if (prepared.memory_policy != 0 &&
      ::syscall(SYS_set_mempolicy, prepared.memory_policy, prepared.memory_nodes, prepared.memory_bits) != 0)
    give_up(prepared, "set_mempolicy");
  place_stdio(prepared);
  // A library of ours (PMIx) may have a connection on another thread that it has not marked yet. A kernel
  // without the call leaves what was not marked.
  if (prepared.close_others) (void)close_all_on_exec();
  for (std::size_t i = 0; i < prepared.inherited_count; ++i)
    if (::fcntl(prepared.inherited[i], F_SETFD, 0) != 0) give_up(prepared, "fcntl");
  if (prepared.working_directory != nullptr && ::chdir(prepared.working_directory) != 0)
    give_up(prepared, "chdir");
  reset_signals(prepared.ignore_user_signals);
  ::execve(prepared.program, prepared.argv, prepared.environment);
  give_up(prepared, "exec");
}

// vfork, not fork: copying page tables costs milliseconds a rank, and the child can report its errno by plain
// memory. In a function of its own, so that nothing of the caller lives in registers across it. All signals
// are blocked: a handler of ours must not run in the child while it shares our memory.
[[gnu::noinline]] pid_t fork_and_become(ChildSetup& prepared) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) become(prepared);
  const int error_number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error_number;
  return pid;
}

constexpr std::size_t kBitsOfWord = 8 * sizeof(unsigned long);

// The kernel reads one bit less than it is told.
std::vector<unsigned long> node_mask(const std::vector<int>& nodes) {
  std::vector<unsigned long> out(1, 0);
  for (const int node : nodes) {
    const auto word = static_cast<std::size_t>(node) / kBitsOfWord;
    if (out.size() < word + 2) out.resize(word + 2, 0);
    out[word] |= 1UL << (static_cast<std::size_t>(node) % kBitsOfWord);
  }
  return out;
}

int kernel_policy(MemoryBinding::Policy policy) {
  return policy == MemoryBinding::Policy::bind ? MPOL_BIND : MPOL_INTERLEAVE;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// A copy above the stdio numbers, close-on-exec.
Result<UniqueFd> moved_up(int fd) {
  UniqueFd copy(fd >= 0 ? ::fcntl(fd, F_DUPFD_CLOEXEC, 3) : ::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (copy && copy.get() < 3) copy.reset(::fcntl(copy.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy)
    return fail(ErrorKind::unavailable, "cannot prepare descriptors of a child: {}", system_reason(errno));
  return copy;
}

bool is_program(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// Of a file that is there the kernel says that there is none, and means what it names to run it.
std::string absent_interpreter_hint(const std::string& program) {
  constexpr std::size_t as_the_kernel_reads = 256;
  std::string first(as_the_kernel_reads, '\0');
  std::ifstream file(program);
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(std::min(first.find('\n'), static_cast<std::size_t>(file.gcount())));
  if (first.starts_with("#!") && first.ends_with('\r'))
    return fmt::format("its lines end as on Windows: sed -i 's/\\r$//' {}", shell_quote(program));
  if (first.starts_with("#!"))
    return fmt::format("the interpreter of its first line is not there: {}", first);
  return "the loader that it names is not there (readelf -l): it was built for another system";
}

std::string hint_of_start(int problem, const std::string& program) {
  switch (problem) {
    case ENOEXEC:
      return "a script needs a first line such as #!/bin/bash; a program must be for this processor";
    case E2BIG:
      return "the arguments and variables are too long together, or one of them is longer than 128 KiB";
    case ENOENT:
      return absent_interpreter_hint(program);
    case EAGAIN:
      return std::string(kTaskLimitHint);
    default:
      return "";
  }
}

std::string in_directory(const std::string& directory, const std::string& path) {
  return directory.empty() || path.starts_with('/') ? path : directory + "/" + path;
}

}  // namespace

Result<std::string> find_program(const std::string& name, const Environment& environment,
                                 const std::string& working_directory) {
  if (name.find('/') != std::string::npos) {
    const std::string path = in_directory(working_directory, name);
    if (is_program(path)) return path;
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode))
      return fail({.kind = ErrorKind::input,
                   .what = fmt::format("{} is a folder, not a program", name),
                   .hint = "name a program in it"});
    return fail({.kind = ErrorKind::input,
                 .what = fmt::format("{} {}", name, exists ? "is not executable" : "does not exist"),
                 .hint = exists ? fmt::format("chmod +x {}", name)
                                : fmt::format("looked for {}", in_directory(working_directory, name))});
  }
  const std::string path = environment.get("PATH", "/usr/local/bin:/usr/bin:/bin");
  for (const std::string& folder : split(path, ':')) {
    const std::string candidate =
        in_directory(working_directory, folder.empty() ? name : folder + "/" + name);
    if (is_program(candidate)) return candidate;
  }
  return fail({.kind = ErrorKind::input,
               .what = fmt::format("program '{}' is not found", name),
               .hint = is_program(in_directory(working_directory, name))
                           ? fmt::format("a file of this name is here: write ./{}", name)
                           : fmt::format("PATH is {}", path)});
}

Result<pid_t> start_child(const ChildSpec& spec) {
  if (spec.argv.empty()) return fail(ErrorKind::internal, "a child without a program");
  const std::string program = TRY(find_program(spec.program.empty() ? spec.argv[0] : spec.program,
                                               spec.environment, spec.working_directory));
  const UniqueFd in = TRY(moved_up(spec.stdin_fd));
  const UniqueFd out = TRY(moved_up(spec.stdout_fd));
  const UniqueFd err = TRY(moved_up(spec.stderr_fd));
  const std::vector<std::string> entries = spec.environment.entries();
  const std::vector<char*> argv = pointers(spec.argv);
  const std::vector<char*> environment = pointers(entries);
  cpu_set_t processors;
  CPU_ZERO(&processors);
  for (const int processor : spec.processors) CPU_SET(processor, &processors);
  const std::vector<unsigned long> memory_nodes = spec.memory ? node_mask(spec.memory->nodes) : node_mask({});
  ChildSetup prepared{
      .program = program.c_str(),
      .argv = argv.data(),
      .environment = environment.data(),
      .working_directory = spec.working_directory.empty() ? nullptr : spec.working_directory.c_str(),
      .stdio = {in.get(), out.get(), err.get()},
      .inherited = spec.inherited_fds.data(),
      .inherited_count = spec.inherited_fds.size(),
      .processors = spec.processors.empty() ? nullptr : &processors,
      .memory_policy = spec.memory ? kernel_policy(spec.memory->policy) : 0,
      .memory_nodes = memory_nodes.data(),
      .memory_bits = memory_nodes.size() * kBitsOfWord,
      .die_with_parent = spec.parent_death == ParentDeath::kill_child,
      .ignore_user_signals = spec.user_signals == UserSignals::ignored,
      .close_others = spec.other_descriptors == OtherDescriptors::closed,
      .open_files = spec.open_files ? &*spec.open_files : nullptr,
      .parent = ::getpid(),
      .failed_call = nullptr,
      .failed_errno = 0};
  const pid_t pid = fork_and_become(prepared);
  if (const int problem = errno; pid < 0)
    return fail({.kind = ErrorKind::unavailable,
                 .what = fmt::format("cannot start {}: {}", spec.argv[0], system_reason(problem)),
                 .hint = hint_of_start(problem, program)});
  if (prepared.failed_call == nullptr) return pid;
  ::waitpid(pid, nullptr, 0);
  const std::string_view failed = prepared.failed_call;
  return fail({.kind = ErrorKind::unavailable,
               .what = fmt::format("cannot start {}: {}: {}", program,
                                   failed == "chdir" ? spec.working_directory : failed,
                                   system_reason(prepared.failed_errno)),
               .hint = failed == "exec" ? hint_of_start(prepared.failed_errno, program) : ""});
}

std::optional<ExitStatus> reap(pid_t pid) {
  int status = 0;
  pid_t got = 0;
  do got = ::waitpid(pid, &status, WNOHANG);
  while (got < 0 && errno == EINTR);
  if (got != pid) return std::nullopt;
  return ExitStatus::from_wait(status);
}

}  // namespace dlrun
