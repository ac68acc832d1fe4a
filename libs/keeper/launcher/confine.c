#define _GNU_SOURCE
#include "fail.h"
#include "launch.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LAST_CAPABILITY = 63, CAPABILITY_VERSION = 0x20080522, JOIN_SESSION_KEYRING = 1, OOM_SCORE = 200 };

static void limit(int what, const char *name, rlim_t most) {
  struct rlimit now;
  if (getrlimit(what, &now)) fail("reading %s", name);
  // If the process that started the launcher is limited itself, it may be unable to set a higher limit. A stricter
  // limit is acceptable.
  const rlim_t hard = now.rlim_max < most ? now.rlim_max : most;
  if (setrlimit(what, &(struct rlimit){hard, hard})) fail("setting %s", name);
}

// When the host is short of memory, sessions are killed before the worker, and the shell before its keeper.
static void raise_oom_score(void) {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  char text[16];
  const int n = snprintf(text, sizeof text, "%d", OOM_SCORE);
  if (fd < 0 || write(fd, text, n) != n) fail("raising oom_score_adj");
  close(fd);
}

static void drop_capabilities(void) {
  for (int capability = 0; capability <= LAST_CAPABILITY; capability++)
    if (prctl(PR_CAPBSET_DROP, capability) && errno != EINVAL) fail("dropping a capability");
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)) fail("dropping ambient capabilities");
}

static void become_user(const Plan *plan) {
  if (plan->same_user) return;
  if (setgroups(0, 0)) fail("leaving all groups");
  if (setresgid(plan->gid, plan->gid, plan->gid)) fail("becoming group %u", plan->gid);
  if (setresuid(plan->uid, plan->uid, plan->uid)) fail("becoming user %u", plan->uid);
}

static void forget_capabilities(void) {
  struct { // as the kernel has them; not every C library brings the kernel's headers
    uint32_t version;
    int pid;
  } header = {.version = CAPABILITY_VERSION};
  struct {
    uint32_t effective, permitted, inheritable;
  } none[2] = {{0}}, left[2];
  if (syscall(SYS_capset, &header, none) || syscall(SYS_capget, &header, left)) fail("dropping capabilities");
  errno = 0;
  if (memcmp(none, left, sizeof none)) fail("capabilities are left");
}

// A process that inherits the starter's key ring can use its keys, as any user.
static void leave_key_ring(void) {
  if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, 0) < 0 && errno != ENOSYS && errno != EPERM)
    fail("leaving the key ring");
}

void confine(const Plan *plan) {
  raise_oom_score();
  limit(RLIMIT_CORE, "RLIMIT_CORE", 0);
  if (plan->address_space) limit(RLIMIT_AS, "RLIMIT_AS", plan->address_space);
  if (plan->file_size) limit(RLIMIT_FSIZE, "RLIMIT_FSIZE", plan->file_size);
  if (plan->cpu_seconds) limit(RLIMIT_CPU, "RLIMIT_CPU", plan->cpu_seconds);
  umask(022);
  drop_capabilities();
  become_user(plan);
  leave_key_ring();
  forget_capabilities();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("giving up new privileges");
  errno = 0;
  if (setuid(0) == 0 || getuid() != plan->uid || geteuid() != plan->uid || getegid() != plan->gid)
    fail("the user did not change");
}
