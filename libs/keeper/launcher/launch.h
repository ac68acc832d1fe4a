#ifndef LAUNCH_H
#define LAUNCH_H
#include <stdint.h>
#include <sys/types.h>

enum { MOST_CGROUPS = 4, MOST_HIDDEN = 8, DESCRIPTOR = 10 };

typedef struct {
  const char *name; // of the controller; empty for version 2
  const char *directory;
} Cgroup;

typedef struct {
  const char *process_file, *ended_file;
  uid_t uid;
  gid_t gid;
  int same_user; // the launcher has no privileges, and the program runs as the same user
  const char *keeper, *workspace; // directories of the host; null: none
  uint64_t scratch_bytes; // of /tmp and /dev/shm, each
  int cgroups, hidden_directories;
  Cgroup cgroup[MOST_CGROUPS];
  const char *hidden[MOST_HIDDEN];
  uint64_t address_space, cpu_seconds, file_size; // 0: not limited
  const char *descriptor; // a file that the program gets open; null: none
  const char *relay; // where the program's stdin and stdout can be reached; null: nowhere
  int shows_errors; // the program's stderr is the launcher's
  char **program;
} Plan;

// Builds the file system of the session. Called in the new namespaces.
void enclose(const Plan *plan);
// Sets the limits, then the user. Afterwards the process lacks the privileges to undo this.
void confine(const Plan *plan);

#endif
