// Reaps every child that has ended. These include orphans of other processes, because the keeper is process 1.
#ifndef REAPER_H
#define REAPER_H
#include <sys/types.h>

// Keeps the status of this child until reaper_take.
void reaper_watch(pid_t pid);
void reaper_forget(pid_t pid);
void reap_children(void);
// Returns 1, once, when the watched child has ended and was reaped.
int reaper_take(pid_t pid, int *status);

#endif
