#define _GNU_SOURCE
#include "directory.h"
#include "shell.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC };

static int open_directory(const uint8_t *path, size_t path_bytes) {
  char own[48], given[PATH_MAX];
  if (shell_pid() <= 0 || path_bytes >= sizeof given || memchr(path, 0, path_bytes)) return -1;
  snprintf(own, sizeof own, "/proc/%d/cwd", shell_pid());
  const int directory = open(own, OPEN_FLAGS);
  if (directory < 0 || !path_bytes) return directory;
  memcpy(given, path, path_bytes);
  given[path_bytes] = 0;
  const int entered = openat(directory, given, OPEN_FLAGS);
  close(directory);
  return entered;
}

size_t directory_describe(uint8_t *text, size_t size, const uint8_t *path, size_t path_bytes) {
  const int directory = open_directory(path, path_bytes);
  if (directory < 0) return 0;
  char link[48];
  snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
  struct stat status;
  // For a removed directory the kernel gives a path that does not exist.
  const int is_there = !fstat(directory, &status) && status.st_nlink > 0;
  const ssize_t n = is_there ? readlink(link, (char *)text, size) : 0;
  close(directory);
  // The path of a directory outside of the root begins with a word instead of a slash.
  return n > 0 && (size_t)n < size && text[0] == '/' ? (size_t)n : 0;
}
