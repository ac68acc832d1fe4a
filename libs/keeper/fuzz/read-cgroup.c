// Prints as JSON the values that cgroup.c reads under the root in the argument.
#include "../src/cgroup.h"
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  cgroup_open(argv[1]);
  const MemoryEvents memory = cgroup_memory_events();
  const MemoryEvents killed = {.kills = memory.kills - 1, .at_limit = memory.at_limit};
  const MemoryEvents killed_at_limit = {.kills = memory.kills - 1, .at_limit = memory.at_limit - 1};
  printf("{\"pidsMax\":%ld,\"full\":%d,\"refused\":%" PRIu64 ",\"oomKills\":%" PRIu64 ",\"atLimit\":%" PRIu64
         ",\"forHost\":[%d,%d,%d],\"processorUs\":%" PRIu64 ",\"memoryPeak\":%" PRIu64 "}\n",
         cgroup_pids_max(), cgroup_is_full_with(cgroup_pids_current()), cgroup_pids_refused(), memory.kills,
         memory.at_limit, cgroup_has_killed_for_host(memory), cgroup_has_killed_for_host(killed_at_limit),
         cgroup_has_killed_for_host(killed), cgroup_processor_us(), cgroup_memory_peak());
  return 0;
}
