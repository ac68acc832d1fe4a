// Late output: pipes of entries that have ended, which background processes still hold.
//
// KEEPERLATE-1. After the first MiB late output is sent at 1 MiB/s at most, because nothing else throttles it.
#ifndef LATE_H
#define LATE_H
#include "wire.h"

void late_open(void);
// Returns whether a background process holds a pipe.
int late_is_open(void);
// Takes over a pipe, whose output is sent with this id, from this offset on. A quiet pipe is one that perhaps only the
// shell holds: unless output comes, its end is not sent.
void late_add(int fd, int stream, const uint8_t *id, uint64_t offset, int is_quiet);
void late_on_readable(int index);
// Sends a piece from each pipe. Returns the milliseconds until the next call, or -1 if none is due.
int late_send(void);

#endif
