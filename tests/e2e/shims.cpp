// For LD_PRELOAD: what a cluster does to programs and this machine does not. DLRUN_TEST_SHIM says what.
//   no-flock     a file system without locks (NFS without lockd, Lustre without -o flock)
//   clock-jump   the wall clock is set forward by ten minutes while the program runs
//   clock-ahead  the clock since the start of the machine is that of one that was started 5,000 s earlier
//   firewall     an agent can connect to no other machine by TCP
//   held-fsync   dlrun-train gets nothing onto the disk while the file exists that DLRUN_TEST_HELD names;
//                each process that waits makes a file of that name and ".PID"
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

bool is_on(const char* what) {
  const char* wanted = std::getenv("DLRUN_TEST_SHIM");
  return wanted != nullptr && std::strcmp(wanted, what) == 0;
}

long real_clock(clockid_t id, timespec* now) {
  return ::syscall(SYS_clock_gettime, id, now);
}

// Half a second after the first question.
bool has_jumped() {
  static timespec first{};
  timespec now{};
  real_clock(CLOCK_MONOTONIC, &now);
  if (first.tv_sec == 0) first = now;
  return (now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 > 500;
}

// Threads may have names of their own.
bool is_program(const char* wanted) {
  char path[4096] = {};
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  const char* const name = length > 0 ? std::strrchr(path, '/') : nullptr;
  return name != nullptr && std::strcmp(name + 1, wanted) == 0;
}

bool is_agent() {
  char name[16] = {};
  return ::prctl(PR_GET_NAME, name) == 0 && std::strcmp(name, "dlrun-agent") == 0;
}

void wait_while_held() {
  const char* const held = std::getenv("DLRUN_TEST_HELD");
  if (held == nullptr || ::access(held, F_OK) != 0) return;
  char mark[4096] = {};
  std::snprintf(mark, sizeof mark, "%s.%d", held, static_cast<int>(::getpid()));
  ::close(::open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  while (::access(held, F_OK) == 0) ::usleep(10'000);
}

}  // namespace

extern "C" int connect(int fd, const sockaddr* address, socklen_t length) {
  const bool is_internet = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  if (!is_internet || !is_on("firewall") || !is_agent())
    return static_cast<int>(::syscall(SYS_connect, fd, address, length));
  errno = ECONNREFUSED;
  return -1;
}

extern "C" int flock(int fd, int operation) {
  if (!is_on("no-flock")) return static_cast<int>(::syscall(SYS_flock, fd, operation));
  errno = ENOLCK;
  return -1;
}

extern "C" int fsync(int fd) {
  if (is_on("held-fsync") && is_program("dlrun-train")) wait_while_held();
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

extern "C" int clock_gettime(clockid_t id, timespec* now) {
  const long out = real_clock(id, now);
  if (id == CLOCK_REALTIME && is_on("clock-jump") && has_jumped()) now->tv_sec += 600;
  if (id == CLOCK_MONOTONIC && is_on("clock-ahead")) now->tv_sec += 5000;
  return static_cast<int>(out);
}
