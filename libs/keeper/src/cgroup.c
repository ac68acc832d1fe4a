#define _GNU_SOURCE
#include "cgroup.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPARE_PIDS = 2 };

static int pids_current = -1, memory_events = -1;
static long pids_max;

static int open_first(const char *v2, const char *v1) {
  const int fd = open(v2, O_RDONLY | O_CLOEXEC);
  return fd >= 0 ? fd : open(v1, O_RDONLY | O_CLOEXEC);
}

static int read_text(int fd, char *text, size_t size) {
  const ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
  if (n <= 0) return 0;
  text[n] = 0;
  return 1;
}

void cgroup_open(void) {
  char text[32];
  const int fd = open_first("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max");
  if (read_text(fd, text, sizeof text)) pids_max = atol(text); // "max" reads as 0: no limit
  if (fd >= 0) close(fd);
  pids_current = open_first("/sys/fs/cgroup/pids.current", "/sys/fs/cgroup/pids/pids.current");
  memory_events = open_first("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control");
}

int cgroup_pids_full(void) {
  char text[32];
  return pids_max > 0 && read_text(pids_current, text, sizeof text) && atol(text) >= pids_max - SPARE_PIDS;
}

uint64_t cgroup_oom_kills(void) {
  char text[512];
  if (!read_text(memory_events, text, sizeof text)) return 0;
  const char *line = strstr(text, "oom_kill ");
  return line ? strtoull(line + strlen("oom_kill "), 0, 10) : 0;
}
