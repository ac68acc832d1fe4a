#define _GNU_SOURCE
#include "tree.h"
#include "file_steps.h"
#include "off_limits.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_BYTES = 64 }; // of a record without its name and target

static struct {
  uint64_t left; // bytes of the page that are left
  int is_full;
  char path[2 * PATH_MAX]; // of the entry, relative to the first directory
} walk;

typedef struct {
  char **at;
  size_t count;
} Names;

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void forget(Names *names) {
  for (size_t i = 0; i < names->count; i++) free(names->at[i]);
  free(names->at);
}

static int read_names(DIR *directory, Names *names) {
  size_t room = 0;
  for (;;) {
    errno = 0;
    const struct dirent *entry = readdir(directory);
    if (!entry) break;
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    if (names->count == room) {
      room = room ? 2 * room : 64;
      char **more = realloc(names->at, room * sizeof *more);
      if (!more) return ENOMEM;
      names->at = more;
    }
    if (!(names->at[names->count] = strdup(entry->d_name))) return ENOMEM;
    names->count++;
  }
  if (errno) return errno; // an incomplete list is an error
  qsort(names->at, names->count, sizeof *names->at, compare);
  return 0;
}

static int list_directory(int fd, size_t length, uint64_t depth, const char *cursor);

static int enter(int directory, const char *name, int flags, int *fd) {
  struct stat status;
  *fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
  if (*fd < 0) return errno == ENOTDIR ? not_a_directory(directory, name) : errno;
  if (!fstat(*fd, &status) && !is_off_limits(&status)) return 0;
  close(*fd);
  *fd = -1;
  return EPERM;
}

// Prints the entry, unless the previous page had it, and then the entries below it.
static int list_entry(int directory, const char *name, size_t length, uint64_t depth, int is_known,
                      const char *cursor) {
  struct stat status;
  if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW)) return 0; // another process has removed it
  const size_t whole = length + strlen(name);
  if (whole >= PATH_MAX) return ENAMETOOLONG;
  strcpy(walk.path + length, name);
  const int enters = S_ISDIR(status.st_mode) && depth != 1;
  int fd = -1;
  const int refused = enters ? enter(directory, name, O_NOFOLLOW, &fd) : 0;
  if (refused && refused != EACCES && refused != EPERM) return refused == ENOENT ? 0 : refused;
  if (!is_known) {
    const size_t bytes = RECORD_BYTES + whole + (S_ISLNK(status.st_mode) ? status.st_size : 0);
    walk.is_full = bytes > walk.left;
    if (!walk.is_full) {
      walk.left -= bytes;
      if (refused) print_record_of('u', directory, name, walk.path, &status);
      else print_record(directory, name, walk.path, &status);
    }
  }
  if (fd < 0) return 0;
  if (walk.is_full) {
    close(fd);
    return 0;
  }
  strcpy(walk.path + whole, "/");
  return list_directory(fd, whole + 1, depth ? depth - 1 : 0, cursor);
}

// Lists a directory and closes its descriptor. `cursor` is where the last page ended in this directory, or null.
static int list_directory(int fd, size_t length, uint64_t depth, const char *cursor) {
  Names names = {0};
  DIR *directory = fdopendir(fd);
  int error = directory ? read_names(directory, &names) : errno;
  const size_t here = cursor ? strcspn(cursor, "/") : 0;
  for (size_t i = 0; !error && !walk.is_full && i < names.count; i++) {
    const char *name = names.at[i], *below = 0;
    int is_known = 0;
    if (cursor) {
      const int order = strncmp(name, cursor, here);
      const int after = order ? order : name[here] != 0;
      if (after < 0) continue;
      is_known = after == 0;
      if (is_known && cursor[here]) below = cursor + here + 1;
    }
    error = list_entry(fd, name, length, depth, is_known, below);
  }
  forget(&names);
  if (directory) closedir(directory);
  else close(fd);
  return error;
}

int tree_list(const FileOperation *file) {
  char cursor[PATH_MAX];
  if (file->data_bytes >= sizeof cursor) return ENAMETOOLONG;
  memcpy(cursor, file->data, file->data_bytes);
  cursor[file->data_bytes] = 0;
  walk.left = file->offset;
  int fd;
  Place place;
  int error = place_open(file->path, 0, &place);
  if (!error) error = enter(place.directory, place.name, unless_links_are_followed(O_NOFOLLOW), &fd);
  if (!error) error = list_directory(fd, 0, file->length, file->data_bytes ? cursor : 0);
  if (!error && walk.is_full) fputs("more", stderr);
  return error ? error : fflush(stdout) ? errno : ferror(stdout) ? EIO : 0;
}
