#define _GNU_SOURCE
#include "cgroup.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPARE_PIDS = 2 };

static int pids_current = -1, pids_events = -1, memory_events = -1;
static long pids_max;

static int open_first(const char *root, const char *v2, const char *v1) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", root, v2);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return fd;
  snprintf(path, sizeof path, "%s/%s", root, v1);
  return open(path, O_RDONLY | O_CLOEXEC);
}

static int read_text(int fd, char *text, size_t size) {
  const ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
  if (n <= 0) return 0;
  text[n] = 0;
  return 1;
}

// Returns the number that follows a word at the beginning of a line.
static uint64_t read_field(int fd, const char *word) {
  char text[1024];
  if (!read_text(fd, text, sizeof text)) return 0;
  for (const char *line = text; line; line = strchr(line, '\n')) {
    while (*line == '\n') line++;
    if (!strncmp(line, word, strlen(word)) && line[strlen(word)] == ' ') return strtoull(line + strlen(word), 0, 10);
  }
  return 0;
}

void cgroup_open(const char *root) {
  char text[32];
  const int fd = open_first(root, "pids.max", "pids/pids.max");
  if (read_text(fd, text, sizeof text)) pids_max = atol(text); // "max" reads as 0: no limit
  if (fd >= 0) close(fd);
  pids_current = open_first(root, "pids.current", "pids/pids.current");
  pids_events = open_first(root, "pids.events", "pids/pids.events");
  memory_events = open_first(root, "memory.events", "memory/memory.oom_control");
}

long cgroup_pids_max(void) { return pids_max; }
uint64_t cgroup_pids_refused(void) { return read_field(pids_events, "max"); }

long cgroup_pids_current(void) {
  char text[32];
  return read_text(pids_current, text, sizeof text) ? atol(text) : 0;
}

int cgroup_is_full_with(long pids) { return pids_max > 0 && pids >= pids_max - SPARE_PIDS; }

uint64_t cgroup_oom_kills(void) { return read_field(memory_events, "oom_kill"); }
