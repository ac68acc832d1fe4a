// What the container's control group says of itself; version 1 and 2. Where there is none, nothing is ever full.
#ifndef CGROUP_H
#define CGROUP_H
#include <stdint.h>

void cgroup_open(void);
int cgroup_pids_full(void);
// How many processes were killed for want of memory so far.
uint64_t cgroup_oom_kills(void);

#endif
