// The container's limit of processes. A fork bomb that an earlier command left behind fills it, and then no command can
// fork.
#ifndef PROCESS_LIMIT_H
#define PROCESS_LIMIT_H
#include "processes.h"

// Before an entry begins: kills processes of earlier commands if there is too little room for new ones.
void process_limit_make_room(void);
// At that moment there was no process but keeper and shell. 0 also where processes cannot be counted.
int process_limit_is_alone(void);
// A fork of the keeper failed: kills them in any case.
void process_limit_sweep(void);
// While a command runs: kills the processes that it has not started itself, if they are why its forks are refused.
// Returns in how many ms to call again, or -1.
int process_limit_tick(Moment since);
// An entry has ended. Looks once more, and then counts forks that were refused until now as its own.
void process_limit_settle(Moment since);

#endif
