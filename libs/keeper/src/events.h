// What the keeper waits for. Each event names its source by a tag. Output can be left out: a command that ends at once
// then costs no wake-up for each of its writes.
#ifndef EVENTS_H
#define EVENTS_H
#include "wire.h"
#include <sys/epoll.h>

enum { MAX_LATE = 512 };

enum Tag {
  SIGNALS,
  REPORT_PIPE,
  LINK_IN,
  LINK_OUT,
  INPUT_PIPE,
  FIRST_OUTPUT,
  FIRST_LATE = FIRST_OUTPUT + STREAMS,
  FIRST_TERMINAL = FIRST_LATE + MAX_LATE,
  OTHERS = 1 << 20, // of events.c
};

// Each returns 0, with a message in the log, when it failed.
int events_open(void);
int events_add(int fd, uint32_t events, uint64_t tag);
int events_change(int fd, uint32_t events, uint64_t tag);
void events_remove(int fd);
// Returns how many of them were filled in.
int events_wait(struct epoll_event *events, int most, int timeout_ms, int with_output);

#endif
