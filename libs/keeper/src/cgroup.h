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
// Returns the processor time and the highest memory of the container since it began; 0 where the kernel does not count
// them for the container.
uint64_t cgroup_processor_us(void);
uint64_t cgroup_memory_peak(void);
// How many processes of the container the kernel has killed for memory, and how often for the container's own limit.
// Version 1 does not count the latter.
typedef struct {
  uint64_t kills, at_limit;
} MemoryEvents;
MemoryEvents cgroup_memory_events(void);
// Returns whether processes were killed since then, and whether that was for the memory of the whole host. In version 1
// it never was once the container, with its cache of files, has been at its own limit.
int cgroup_has_killed(MemoryEvents since);
int cgroup_has_killed_for_host(MemoryEvents since);

#endif
