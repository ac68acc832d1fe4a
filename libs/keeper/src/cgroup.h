// Limits and counters of the container's control group: version 1 or 2, whichever is mounted.
#ifndef CGROUP_H
#define CGROUP_H
#include <stdint.h>

// A file that is missing reads as "no limit" and as a counter of 0: every kernel has some of them only.
void cgroup_open(const char *root);
// 0: no limit.
long cgroup_pids_max(void);
long cgroup_pids_current(void);
// At most two more processes can be made.
int cgroup_is_full_with(long pids);
// How many forks the limit has refused so far; always 0 where the kernel does not count them.
uint64_t cgroup_pids_refused(void);
// How many processes of the container the kernel has killed for memory.
uint64_t cgroup_oom_kills(void);

#endif
