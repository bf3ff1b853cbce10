// For LD_PRELOAD: what a cluster does to programs and this machine does not. DLRUN_TEST_SHIM says what.
//   no-flock     a file system without locks (NFS without lockd, Lustre without -o flock)
//   clock-jump   the wall clock is set forward by ten minutes while the program runs
//   clock-ahead  the clock since the start of the machine is that of one that was started 5,000 s earlier
//   firewall     an agent can connect to no other machine by TCP
#include <cerrno>
#include <cstdlib>
#include <cstring>

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

bool is_agent() {
  char name[16] = {};
  return ::prctl(PR_GET_NAME, name) == 0 && std::strcmp(name, "dlrun-agent") == 0;
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

extern "C" int clock_gettime(clockid_t id, timespec* now) {
  const long out = real_clock(id, now);
  if (id == CLOCK_REALTIME && is_on("clock-jump") && has_jumped()) now->tv_sec += 600;
  if (id == CLOCK_MONOTONIC && is_on("clock-ahead")) now->tv_sec += 5000;
  return static_cast<int>(out);
}
