#define _GNU_SOURCE
#include "remove.h"
#include "off_limits.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The identities of the directories on the way down, without descriptors, because a tree may have more levels than a
// process may have descriptors. The way up is `..`, if that is still the same directory.
typedef struct {
  struct stat *above;
  size_t depth, room;
} Way;

// Removes a file or an empty directory. Returns 0, ENOTEMPTY or another errno.
static int remove_one(int directory, const char *name) {
  if (!unlinkat(directory, name, 0)) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  const int error = errno;
  if (!unlinkat(directory, name, AT_REMOVEDIR)) return 0;
  return errno == ENOTDIR ? error : errno == EEXIST ? ENOTEMPTY : errno;
}

// Opens a directory below the open one, and replaces `fd` by its descriptor.
static int go_down(Way *way, int *fd, const char *name) {
  struct stat below;
  if (way->depth == way->room) {
    const size_t room = way->room ? 2 * way->room : 64;
    struct stat *more = realloc(way->above, room * sizeof *more);
    if (!more) return ENOMEM;
    way->above = more;
    way->room = room;
  }
  if (fstat(*fd, &way->above[way->depth])) return errno;
  const int next = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (next < 0) return errno;
  const int error = fstat(next, &below) ? errno : is_off_limits(&below) ? EPERM : 0;
  close(error ? next : *fd);
  if (error) return error;
  *fd = next;
  way->depth++;
  return 0;
}

static int go_up(Way *way, int *fd) {
  const struct stat *expected = &way->above[way->depth - 1];
  struct stat above;
  const int next = openat(*fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (next < 0) return errno;
  const int error = fstat(next, &above) ? errno : 0;
  if (error || above.st_dev != expected->st_dev || above.st_ino != expected->st_ino) {
    close(next);
    return error ? error : EBUSY; // another process has moved it
  }
  close(*fd);
  *fd = next;
  way->depth--;
  return 0;
}

// Removes what is in the open directory, up to the first directory that is not empty; `full` is its name, or empty.
static int remove_contents(int fd, char *full) {
  const int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *directory = own < 0 ? 0 : fdopendir(own);
  int error = directory ? 0 : errno;
  *full = 0;
  while (!error && !*full) {
    errno = 0;
    const struct dirent *entry = readdir(directory);
    if (!entry) {
      error = errno; // 0 at the end of the directory
      break;
    }
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    error = remove_one(fd, entry->d_name);
    if (error == ENOENT) error = 0; // another process has removed it
    if (error != ENOTEMPTY) continue;
    error = 0;
    strcpy(full, entry->d_name);
  }
  if (directory) closedir(directory);
  return error;
}

// Empties the open directory. A directory that was emptied below is removed when its parent is read again.
static int empty(Way *way, int *fd) {
  char full[NAME_MAX + 1];
  for (;;) {
    int error = remove_contents(*fd, full);
    if (error) return error;
    if (!*full && way->depth == 1) return 0;
    error = *full ? go_down(way, fd, full) : go_up(way, fd);
    if (error == ENOENT && *full) continue; // another process has removed it
    if (error) return error;
  }
}

int remove_at(int directory, const char *name, int recursive) {
  int error = remove_one(directory, name);
  if (error != ENOTEMPTY || !recursive) return error;
  Way way = {0};
  int fd = dup(directory);
  if (fd < 0) return errno;
  error = go_down(&way, &fd, name);
  if (!error) error = empty(&way, &fd);
  free(way.above);
  close(fd);
  if (error) return error;
  return unlinkat(directory, name, AT_REMOVEDIR) ? errno : 0;
}
