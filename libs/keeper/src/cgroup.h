// What the container's control group says of its limits: version 1 or 2, whichever is mounted.
#ifndef CGROUP_H
#define CGROUP_H
#include <stdint.h>

void cgroup_open(const char *root);
// 0: no limit.
long cgroup_pids_max(void);
long cgroup_pids_current(void);
// Few processes, if any, can still be made.
int cgroup_is_full_with(long pids);
// How many forks the limit has refused so far; always 0 where the kernel does not count them.
uint64_t cgroup_pids_refused(void);
// How many processes of the container the kernel has killed for memory.
uint64_t cgroup_oom_kills(void);

#endif
