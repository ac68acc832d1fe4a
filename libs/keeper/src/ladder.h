// The stop ladder ends the running command: interrupt, terminate, kill; the shell itself last. No step forks.
//
// The steps are at 0, 20 and 60 % of the grace; when it is over, a shell that has not come back is killed. Even if the
// grace is 0, the shell gets the time that it needs to save its state.
#ifndef LADDER_H
#define LADDER_H
#include "processes.h"
#include "wire.h"

enum { LADDER_DONE = -2 };

void ladder_begin(enum EndReason reason, uint32_t grace_ms, Moment since);
int ladder_is_on(void);
enum EndReason ladder_reason(void);
// Takes the due step. Returns the milliseconds until the next call, or LADDER_DONE when the shell is back and no
// process newer than the command is left.
int ladder_tick(int shell_is_back);
void ladder_end(void);

#endif
