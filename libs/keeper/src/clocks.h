// The deadlines of the running entry.
//
// CLOCK-1. The clocks stop only while output cannot be stored, and while a ring buffer is full without a connected
//     worker. The worker pings, so time with a full ring buffer is added when its next frame arrives.
// CLOCK-2. A full ring buffer counts as output: the command waits, and is not silent.
#ifndef CLOCKS_H
#define CLOCKS_H
#include "wire.h"

// Sets the limits, where 0 is none, and starts both clocks.
void clocks_set(uint32_t timeout_ms, uint32_t no_output_timeout_ms);
// Starts both clocks at 0.
void clocks_start(void);
void clocks_count(void);
void clocks_storage(int is_away);
// Called for each frame from the owner: adds the time with a full ring buffer.
void clocks_confirm(void);
// Called when a worker has claimed the keeper: drops the time with a full ring buffer before that.
void clocks_forget(void);

enum Alarm { NO_ALARM, WALL_ALARM, NO_OUTPUT_ALARM };
// Returns the limit that has passed. Sets `wake` to the milliseconds until the next call, or -1 if none is due.
enum Alarm clocks_alarm(int *wake);

#endif
