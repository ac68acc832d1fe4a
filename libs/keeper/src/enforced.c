#define _GNU_SOURCE
#include "enforced.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { FILE_BYTES = 4096 };

typedef struct {
  char *text;
  size_t size, used;
} Lines;

// Adds a line, or nothing if it does not fit. A run of blanks in the value becomes one blank, and a newline a comma.
static void add(Lines *lines, const char *name, const char *value, size_t n) {
  size_t at = lines->used + strlen(name) + 1;
  if (at + n + 1 >= lines->size) return;
  memcpy(lines->text + lines->used, name, strlen(name));
  lines->text[at - 1] = ' ';
  const size_t from = at;
  char waiting = 0; // the separator before the next character
  for (size_t i = 0; i < n; i++) {
    if (value[i] == '\n') waiting = ',';
    else if (value[i] == ' ' || value[i] == '\t') waiting = waiting ? waiting : ' ';
    else {
      if (waiting && at > from) lines->text[at++] = waiting;
      waiting = 0;
      lines->text[at++] = value[i];
    }
  }
  if (at == from) return;
  lines->text[at++] = '\n';
  lines->used = at;
}

// Reads the beginning of a small file. Returns 0 if there is none.
static int read_file(const char *directory, const char *name, char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, text, FILE_BYTES - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

static void add_file(Lines *lines, const char *name, const char *directory, const char *file) {
  char text[FILE_BYTES];
  if (read_file(directory, file, text)) add(lines, name, text, strlen(text));
}

// Adds a field of /proc/<pid>/status: what follows the label at the beginning of a line.
static void add_field(Lines *lines, const char *name, const char *status, const char *label) {
  for (const char *line = status; line; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, label, strlen(label))) continue;
    const char *value = line + strlen(label);
    add(lines, name, value, strcspn(value, "\n"));
    return;
  }
}

static void add_process(Lines *lines, const char *process) {
  char status[FILE_BYTES];
  add_file(lines, "uid_map", process, "uid_map");
  if (!read_file(process, "status", status)) return;
  add_field(lines, "cap_eff", status, "CapEff:");
  add_field(lines, "cap_bnd", status, "CapBnd:");
  add_field(lines, "no_new_privs", status, "NoNewPrivs:");
  add_field(lines, "seccomp", status, "Seccomp:");
}

static int has_file(const char *directory, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return !access(path, F_OK);
}

static void add_cgroup(Lines *lines, const char *cgroups) {
  if (has_file(cgroups, "cgroup.controllers")) {
    add(lines, "cgroup", "2", 1);
    add_file(lines, "memory_max", cgroups, "memory.max");
    add_file(lines, "pids_max", cgroups, "pids.max");
    add_file(lines, "oom_group", cgroups, "memory.oom.group");
  } else if (has_file(cgroups, "memory") || has_file(cgroups, "pids")) {
    add(lines, "cgroup", "1", 1);
    add_file(lines, "memory_max", cgroups, "memory/memory.limit_in_bytes");
    add_file(lines, "pids_max", cgroups, "pids/pids.max");
  }
}

size_t enforced_describe(const char *process, const char *cgroups, const char *workspace, char *text, size_t size) {
  Lines lines = {.text = text, .size = size};
  add_process(&lines, process);
  add_cgroup(&lines, cgroups);
  struct statvfs mounted;
  if (!statvfs(workspace, &mounted)) add(&lines, "exec_workspace", mounted.f_flag & ST_NOEXEC ? "0" : "1", 1);
  return lines.used;
}
