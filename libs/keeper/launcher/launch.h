#ifndef LAUNCH_H
#define LAUNCH_H
#include <stdint.h>
#include <sys/types.h>

enum { MOST_CGROUPS = 4, MOST_HIDDEN = 8 };

typedef struct {
  const char *name; // of the controller; empty for version 2
  const char *folder;
} Cgroup;

typedef struct {
  const char *process_file, *ended_file;
  uid_t uid;
  gid_t gid;
  int same_user; // we have no privileges, and it is to run as who we are
  const char *keeper, *workspace; // folders of the host; null: none
  uint64_t scratch_bytes; // of /tmp and /dev/shm, each
  int cgroups, hidden_folders;
  Cgroup cgroup[MOST_CGROUPS];
  const char *hidden[MOST_HIDDEN];
  uint64_t address_space, cpu_seconds; // 0: not limited
  char **program;
} Plan;

// Says what could not be done, with the system's reason where there is one (errno), and ends this process.
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

// The file system that the session sees. Called in the namespaces that are to be changed.
void surround(const Plan *plan);
// Limits, then the user: after it nothing is left that could take any of it back.
void confine(const Plan *plan);

#endif
