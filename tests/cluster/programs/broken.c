/* A library that breaks one thing for the programs that load it first: -D RENAME: no file can be renamed; -D
 * CLOCK: the clock is an hour behind. */
#define _GNU_SOURCE
#include <errno.h>
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
