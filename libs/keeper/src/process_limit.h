// The container's limit of processes. A fork bomb that an earlier command left behind keeps commands from forking.
#ifndef PROCESS_LIMIT_H
#define PROCESS_LIMIT_H
#include "processes.h"

// Kills processes of earlier commands if there is too little room for new ones. Called before an entry begins.
void process_limit_make_room(void);
// Returns whether process_limit_make_room found only keeper and shell. Returns 0 if processes cannot be counted.
int process_limit_is_alone(void);
// Counts the processes. Returns whether there are only keeper and shell.
int process_limit_counts_alone(void);
// Kills processes of earlier commands. Called when a fork of the keeper has failed.
void process_limit_sweep(void);
// Kills processes that the running command has not started, if its forks are refused because of them. Returns the
// milliseconds until the next call, or -1 if none is due.
int process_limit_tick(Moment since);
// Called when an entry has ended: checks once more, and assigns the forks refused until now to that entry.
void process_limit_settle(Moment since);

#endif
