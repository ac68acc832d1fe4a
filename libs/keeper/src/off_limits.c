#define _GNU_SOURCE
#include "off_limits.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OWN_FD = 3, MOST_FILES = 16 };

static struct {
  int fd; // -1: there is no directory
  struct stat status;
  int is_own_mount; // every file on its device is the keeper's
  int is_met;
  struct stat files[MOST_FILES];
  int count;
} own = {.fd = -1};

static int is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

void off_limits_open(const char *directory) {
  struct stat above;
  own.fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (own.fd < 0 || fstat(own.fd, &own.status)) return; // the keeper's own writes fail then, too
  own.is_own_mount = !fstatat(own.fd, "..", &above, 0) && above.st_dev != own.status.st_dev;
}

void off_limits_add(const struct stat *status) {
  if (own.count < MOST_FILES) own.files[own.count++] = *status;
}

void off_limits_keep_only(void) {
  if (own.fd != OWN_FD && own.fd >= 0) own.fd = dup2(own.fd, OWN_FD);
  if (!syscall(SYS_close_range, OWN_FD + 1, ~0u, 0)) return;
  const long most = sysconf(_SC_OPEN_MAX); // close_range() is missing before Linux 5.9
  for (int fd = OWN_FD + 1; fd < most; fd++) close(fd);
}

// Compares the file with each file in the directory, because it may have another name elsewhere on the device.
static int is_in_directory(const struct stat *status) {
  const int fd = openat(own.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *directory = fd < 0 ? 0 : fdopendir(fd);
  if (!directory) return errno != ENOENT; // a file that cannot be compared is off limits
  int found = 0;
  for (struct dirent *entry; !found && (entry = readdir(directory));)
    found = entry->d_ino == status->st_ino && strcmp(entry->d_name, "..");
  closedir(directory);
  return found;
}

static int is_ours(const struct stat *status) {
  for (int i = 0; i < own.count; i++)
    if (is_same(&own.files[i], status)) return 1;
  if (own.fd < 0 || status->st_dev != own.status.st_dev) return 0;
  return own.is_own_mount || is_in_directory(status);
}

int is_off_limits(const struct stat *status) {
  const int found = is_ours(status);
  own.is_met |= found;
  return found;
}

int leads_off_limits(const struct stat *status) {
  struct stat at = own.status, above;
  int fd = own.fd < 0 ? -1 : dup(own.fd), found = 0;
  while (fd >= 0 && !(found = is_same(&at, status))) {
    const int next = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    fd = next;
    if (fd < 0 || fstat(fd, &above) || is_same(&above, &at)) break; // the root directory is its own parent
    at = above;
  }
  if (fd >= 0) close(fd);
  own.is_met |= found;
  return found;
}

int off_limits_is_met(void) { return own.is_met; }
