/* A library that breaks one thing for the programs that load it first: -D RENAME: no file can be renamed; -D
 * CLOCK: the clock is an hour behind; -D WAKE: what waits for the network wakes up late. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef RENAME
int rename(const char* from, const char* to) {
  (void)from, (void)to;
  errno = EPERM;
  return -1;
}
#endif

#ifdef CLOCK
int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec -= 3600;
  return result;
}
#endif

#ifdef WAKE
int poll(struct pollfd* fds, nfds_t count, int timeout) {
  const struct timespec late = {0, 20000000};
  for (nfds_t i = 0; i < count; ++i) {
    if (!(fds[i].events & POLLIN)) continue; /* who only sends is not held up, however slow others are */
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &late, 0);
    break;
  }
  struct timespec limit = {timeout / 1000, timeout % 1000 * 1000000L};
  return (int)syscall(SYS_ppoll, fds, count, timeout < 0 ? 0 : &limit, 0, 0);
}
#endif
