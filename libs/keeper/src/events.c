#define _GNU_SOURCE
#include "events.h"
#include "log.h"
#include <errno.h>

static int epoll = -1;   // everything but output
static int outputs = -1; // output, and the other epoll

int events_open(void) {
  epoll = epoll_create1(EPOLL_CLOEXEC);
  outputs = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = OTHERS};
  if (epoll >= 0 && outputs >= 0 && !epoll_ctl(outputs, EPOLL_CTL_ADD, epoll, &event)) return 1;
  log_failure("epoll_create1");
  return 0;
}

static int is_output(uint64_t tag) { return tag >= FIRST_OUTPUT && tag < FIRST_TERMINAL; }

static int control(int epoll_fd, int operation, int fd, uint32_t events, uint64_t tag) {
  struct epoll_event event = {.events = events, .data.u64 = tag};
  if (!epoll_ctl(epoll_fd, operation, fd, &event)) return 1;
  log_failure("epoll_ctl");
  return 0;
}

int events_add(int fd, uint32_t events, uint64_t tag) {
  return control(is_output(tag) ? outputs : epoll, EPOLL_CTL_ADD, fd, events, tag);
}

int events_change(int fd, uint32_t events, uint64_t tag) {
  return control(is_output(tag) ? outputs : epoll, EPOLL_CTL_MOD, fd, events, tag);
}

void events_remove(int fd) { control(epoll, EPOLL_CTL_DEL, fd, 0, 0); }

static int wait_for(int epoll_fd, struct epoll_event *events, int most, int timeout_ms) {
  const int n = epoll_wait(epoll_fd, events, most, timeout_ms);
  // SIGCONT after a stop causes EINTR. After any other error the loop continues, as after a wait without events.
  if (n < 0 && errno != EINTR) log_failure("epoll_wait");
  return n < 0 ? 0 : n;
}

int events_wait(struct epoll_event *events, int most, int timeout_ms, int with_output) {
  if (!with_output) return wait_for(epoll, events, most, timeout_ms);
  int n = wait_for(outputs, events, most, timeout_ms);
  for (int i = 0; i < n; i++) {
    if (events[i].data.u64 != OTHERS) continue;
    // `epoll` is ready. The last event replaces that of `epoll`, and the events in `epoll` are appended.
    const struct epoll_event last = events[n - 1];
    events[i] = last;
    n--;
    return n + wait_for(epoll, events + n, most - n, 0);
  }
  return n;
}
