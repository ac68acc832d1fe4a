#define _GNU_SOURCE
#include "cgroup.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPARE_PIDS = 2, PEAK_BELOW = 1 << 20 };

static int pids_current = -1, pids_events = -1, memory_events = -1;
static int processor_v2 = -1, processor_v1 = -1;
static int peak = -1, limit = -1; // bytes of memory; the limit only in version 1
static long pids_max;

static int open_in(const char *root, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", root, name);
  return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_first(const char *root, const char *v2, const char *v1) {
  const int fd = open_in(root, v2);
  return fd >= 0 ? fd : open_in(root, v1);
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
  processor_v2 = open_in(root, "cpu.stat");
  processor_v1 = open_first(root, "cpuacct/cpuacct.usage", "cpu/cpuacct.usage"); // both controllers may be one mount
  peak = open_first(root, "memory.peak", "memory/memory.max_usage_in_bytes");
  limit = open_in(root, "memory/memory.limit_in_bytes");
}

long cgroup_pids_max(void) { return pids_max; }
uint64_t cgroup_pids_refused(void) { return read_field(pids_events, "max"); }

long cgroup_pids_current(void) {
  char text[32];
  return read_text(pids_current, text, sizeof text) ? atol(text) : 0;
}

int cgroup_is_full_with(long pids) { return pids_max > 0 && pids >= pids_max - SPARE_PIDS; }

static uint64_t read_number(int fd) {
  char text[32];
  return read_text(fd, text, sizeof text) ? strtoull(text, 0, 10) : 0;
}

uint64_t cgroup_processor_us(void) {
  return processor_v2 >= 0 ? read_field(processor_v2, "usage_usec") : read_number(processor_v1) / 1000;
}

uint64_t cgroup_memory_peak(void) { return read_number(peak); }

MemoryEvents cgroup_memory_events(void) {
  return (MemoryEvents){
    .kills = read_field(memory_events, "oom_kill"),
    .at_limit = read_field(memory_events, "oom"),
  };
}

// Memory is charged in batches, so the peak may be a little below the limit.
static int has_been_at_limit(void) {
  return peak >= 0 && limit >= 0 && cgroup_memory_peak() + PEAK_BELOW >= read_number(limit);
}

int cgroup_has_killed(MemoryEvents since) { return cgroup_memory_events().kills > since.kills; }

int cgroup_has_killed_for_host(MemoryEvents since) {
  const MemoryEvents now = cgroup_memory_events();
  return now.kills > since.kills && now.at_limit == since.at_limit && !has_been_at_limit();
}
