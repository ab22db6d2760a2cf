/* Preloaded into a server: its wall clock is off by what the file named in CLOCK_OFF_FILE says (milliseconds, a 64-bit
 * number, read anew each time). The monotonic clock stays as it is. libfaketime can't do this to a server that is linked
 * with jemalloc: each asks the other before it is ready. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *off_ms;

__attribute__((constructor)) static void open_file(void) {
  const char *path = getenv("CLOCK_OFF_FILE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *at = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) off_ms = at;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  int failed = (int)syscall(SYS_clock_gettime, clock, out);
  if (failed || !off_ms || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t nanos = out->tv_nsec + (*off_ms % 1000) * 1000000;
  out->tv_sec += *off_ms / 1000 + (nanos >= 1000000000) - (nanos < 0);
  out->tv_nsec = (nanos + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
