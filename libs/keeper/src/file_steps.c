#define _GNU_SOURCE
#include "file_steps.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int write_all(int fd, const void *bytes, size_t n) {
  const char *from = bytes;
  while (n) {
    const ssize_t written = write(fd, from, n);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    from += written;
    n -= written;
  }
  return 0;
}

// Not blocking: a FIFO or a device is refused, not waited for.
int open_regular(const char *path, int flags, int *fd) {
  struct stat status;
  *fd = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0644);
  if (*fd < 0) return errno;
  if (fstat(*fd, &status)) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return S_ISREG(status.st_mode) ? 0 : EINVAL;
}

int make_parents(const char *path) {
  char parent[PATH_MAX];
  strcpy(parent, path);
  for (char *slash = parent + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    if (mkdir(parent, 0755) && errno != EEXIST) {
      struct stat status;
      const int error = errno;
      // A read-only directory above an existing one reports itself first.
      if (stat(parent, &status) || !S_ISDIR(status.st_mode)) return error;
    }
    *slash = '/';
  }
  return 0;
}

void say_record(int folder, const char *path, const char *name, const struct stat *status) {
  const char type = S_ISREG(status->st_mode) ? 'f'
                  : S_ISDIR(status->st_mode) ? 'd'
                  : S_ISLNK(status->st_mode) ? 'l'
                                             : 'o';
  say_record_of(type, folder, path, name, status);
}

void say_record_of(char type, int folder, const char *path, const char *name, const struct stat *status) {
  char target[PATH_MAX] = "";
  if (S_ISLNK(status->st_mode)) {
    const ssize_t n = readlinkat(folder, path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
  }
  const long long modified = (long long)status->st_mtim.tv_sec * 1000 + status->st_mtim.tv_nsec / 1000000;
  printf("%c%c%lld%c%o%c%lld%c%s%c%s%c", type, 0, (long long)status->st_size, 0, status->st_mode & 07777, 0, modified,
         0, name, 0, target, 0);
}
