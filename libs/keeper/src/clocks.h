// The deadlines of the running entry.
//
// CLOCK-1. They stand still only while storage is away, and while a ring buffer is full and no worker is there. A frame
//     of the worker (it pings) proves that it was there, so time with a full ring buffer counts once the next frame
//     comes.
// CLOCK-2. A full ring buffer counts as output: its command is not silent, it waits.
#ifndef CLOCKS_H
#define CLOCKS_H
#include "wire.h"

// 0: no limit. Starts them, too.
void clocks_set(uint32_t timeout_ms, uint32_t no_output_timeout_ms);
// They count from 0 from here on.
void clocks_start(void);
void clocks_count(void);
void clocks_storage(int is_away);
// A frame came from the owner.
void clocks_confirm(void);
// A worker has claimed: time without one does not count.
void clocks_forget(void);

enum Alarm { NO_ALARM, WALL_ALARM, NO_OUTPUT_ALARM };
// In `wake`: in how many ms to call again, or -1.
enum Alarm clocks_alarm(int *wake);

#endif
