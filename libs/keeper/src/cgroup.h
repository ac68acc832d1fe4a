// Limits and counters of the container's control group: version 1 or 2, whichever is mounted.
#ifndef CGROUP_H
#define CGROUP_H
#include <stdint.h>

// Opens the files of the control group. A missing file counts as "no limit" or as a counter of 0.
void cgroup_open(const char *root);
// Returns the limit of processes, or 0 for none.
long cgroup_pids_max(void);
long cgroup_pids_current(void);
// Returns whether the limit leaves room for at most two more processes when there are `pids`.
int cgroup_is_full_with(long pids);
// Returns how many forks the limit has refused so far; always 0 where the kernel does not count them.
uint64_t cgroup_pids_refused(void);
// Returns how many processes of the container the kernel has killed for memory.
uint64_t cgroup_oom_kills(void);

#endif
