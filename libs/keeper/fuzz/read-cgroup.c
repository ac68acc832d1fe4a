// Prints as JSON the values that cgroup.c reads under the root in the argument.
#include "../src/cgroup.h"
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  cgroup_open(argv[1]);
  printf("{\"pidsMax\":%ld,\"full\":%d,\"refused\":%" PRIu64 ",\"oomKills\":%" PRIu64 "}\n", cgroup_pids_max(),
         cgroup_is_full_with(cgroup_pids_current()), cgroup_pids_refused(), cgroup_oom_kills());
  return 0;
}
