/* Loaded before redis-server: its wall clock is off by as many seconds as the file of SHIFT_FILE says, at every moment. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const long *shift;

__attribute__((constructor)) static void map(void) {
  void *page = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, open(getenv("SHIFT_FILE"), O_RDONLY), 0);
  if (page == MAP_FAILED) abort();
  shift = page;
}

int gettimeofday(struct timeval *now, void *zone) {
  int failed = syscall(SYS_gettimeofday, now, zone);
  if (!failed && shift) now->tv_sec += *shift;
  return failed;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *shift;
  return failed;
}

time_t time(time_t *out) {
  struct timeval now;
  gettimeofday(&now, NULL);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
