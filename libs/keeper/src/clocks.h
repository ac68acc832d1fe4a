// The deadlines of the running entry.
//
// C1. They stand still only while a ring is full and no worker is there, or storage is said to be away. A worker is known to
//     have been there by a frame of its own (it pings), so time with a full ring counts when the next one comes.
// C2. A full ring is output: its command is not silent, it waits.
#ifndef CLOCKS_H
#define CLOCKS_H
#include "wire.h"

// 0: no limit.
void clocks_set(uint32_t wall_ms, uint32_t no_output_ms);
// They run from here on.
void clocks_start(void);
void clocks_count(void);
uint64_t clocks_run_ms(void);
void clocks_storage(int is_away);
// A frame came: of the worker that was there all the time, or of a new one.
void clocks_confirm(void);
void clocks_forget(void);

enum Alarm { NO_ALARM, WALL_ALARM, NO_OUTPUT_ALARM };
// In `wake`: in how many ms to ask again, or -1.
enum Alarm clocks_alarm(int *wake);

#endif
