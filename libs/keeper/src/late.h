// Late output: pipes of entries that have ended, which background processes still hold.
//
// KEEPERLATE-1. It is sent at 1 MiB/s at most after the first MiB: it is not stored, so there is no acknowledgement to
//     hold it back, and the worker has other sessions to serve.
#ifndef LATE_H
#define LATE_H
#include "wire.h"

void late_open(void);
// Whether a pipe is held.
int late_is_open(void);
// Takes the pipe over, with the id and the offset to send it under.
void late_add(int fd, int stream, const uint8_t *id, uint64_t offset);
void late_on_readable(int index);
// Sends a piece of each. Returns in how many ms to call again, or -1.
int late_send(void);

#endif
