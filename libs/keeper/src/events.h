// The events that the keeper waits for, each with a tag for its source. A wait can ignore the events of output.
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
  LINK_PEERS,
  INPUT_PIPE,
  FIRST_OUTPUT,
  FIRST_LATE = FIRST_OUTPUT + STREAMS,
  FIRST_TERMINAL = FIRST_LATE + MAX_LATE,
  OTHERS = 1 << 20, // used in events.c only
};

// These functions return 0, with a message in the log, on failure.
int events_open(void);
int events_add(int fd, uint32_t events, uint64_t tag);
int events_change(int fd, uint32_t events, uint64_t tag);
void events_remove(int fd);
// Waits for events, and returns how many there are.
int events_wait(struct epoll_event *events, int most, int timeout_ms, int with_output);

#endif
