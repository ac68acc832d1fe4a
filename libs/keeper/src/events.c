#define _GNU_SOURCE
#include "events.h"
#include "log.h"
#include <errno.h>

static int epoll = -1;

int events_open(void) {
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) log_failure("epoll_create1");
  return epoll >= 0;
}

static int control(int operation, int fd, uint32_t events, uint64_t tag) {
  struct epoll_event event = {.events = events, .data.u64 = tag};
  if (!epoll_ctl(epoll, operation, fd, &event)) return 1;
  log_failure("epoll_ctl");
  return 0;
}

int events_add(int fd, uint32_t events, uint64_t tag) { return control(EPOLL_CTL_ADD, fd, events, tag); }
int events_change(int fd, uint32_t events, uint64_t tag) { return control(EPOLL_CTL_MOD, fd, events, tag); }
void events_remove(int fd) { control(EPOLL_CTL_DEL, fd, 0, 0); }

int events_wait(struct epoll_event *events, int most, int timeout_ms) {
  const int n = epoll_wait(epoll, events, most, timeout_ms);
  // EINTR: SIGCONT after a stop. Whatever else it is would come back at once; the ticks go on at their own pace.
  if (n < 0 && errno != EINTR) log_failure("epoll_wait");
  return n < 0 ? 0 : n;
}
