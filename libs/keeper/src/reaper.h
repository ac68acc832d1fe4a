// Collects every child that has ended: the keeper is process 1, so also those that others left behind.
#ifndef REAPER_H
#define REAPER_H
#include <sys/types.h>

// The status of this child is kept until its owner takes it.
void reaper_watch(pid_t pid);
void reaper_forget(pid_t pid);
void reap_children(void);
// 1, once, when the watched child has ended and was collected.
int reaper_take(pid_t pid, int *status);

#endif
