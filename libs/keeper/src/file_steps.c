#define _GNU_SOURCE
#include "file_steps.h"
#include "off_limits.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int refuses_links;

void refuse_links(void) { refuses_links = 1; }

int unless_links_are_followed(int flags) { return refuses_links ? flags : 0; }

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

// Opens without blocking, so that a FIFO or a device is refused at once.
int open_regular(int directory, const char *path, int flags, int *fd) {
  struct stat status;
  *fd = openat(directory, path, flags | unless_links_are_followed(O_NOFOLLOW) | O_NONBLOCK | O_CLOEXEC, 0644);
  if (*fd < 0) return errno;
  if (fstat(*fd, &status)) return errno;
  if (is_off_limits(&status)) return EPERM;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return S_ISREG(status.st_mode) ? 0 : EINVAL;
}

int not_a_directory(int directory, const char *name) {
  struct stat status;
  const int is_link =
    refuses_links && !fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) && S_ISLNK(status.st_mode);
  return is_link ? ELOOP : ENOTDIR;
}

static int open_directory(int directory, const char *path, int *fd) {
  struct stat status;
  *fd = openat(directory, path, O_PATH | O_DIRECTORY | unless_links_are_followed(O_NOFOLLOW) | O_CLOEXEC);
  if (*fd < 0) return errno == ENOTDIR ? not_a_directory(directory, path) : errno;
  const int error = fstat(*fd, &status) ? errno : is_off_limits(&status) ? EPERM : 0;
  if (error) close(*fd);
  return error;
}

// Opens the directories of a path from the root on, each in its parent. Makes missing directories if it should.
static int walk_to(char *path, int makes_parents, int *fd) {
  int error = open_directory(AT_FDCWD, "/", fd);
  for (char *name = path; !error && name;) {
    char *slash = strchr(name, '/');
    if (slash) *slash = 0;
    int next = *fd;
    if (*name) {
      error = refuses_links && !strcmp(name, "..") ? EINVAL : open_directory(*fd, name, &next);
      if (error == ENOENT && makes_parents)
        error = mkdirat(*fd, name, 0755) && errno != EEXIST ? errno : open_directory(*fd, name, &next);
      close(*fd);
    }
    *fd = next;
    name = slash ? slash + 1 : 0;
  }
  return error;
}

// The last name keeps its trailing slashes, which require a directory.
int place_open(const char *path, int makes_parents, Place *place) {
  char parent[sizeof place->name];
  size_t end = strlen(path);
  if (end >= sizeof parent) return ENAMETOOLONG;
  while (end > 1 && path[end - 1] == '/') end--;
  while (end && path[end - 1] != '/') end--;
  memcpy(parent, path, end);
  parent[end] = 0;
  strcpy(place->name, path[end] ? path + end : ".");
  if (refuses_links) return strcmp(place->name, "..") ? walk_to(parent, makes_parents, &place->directory) : EINVAL;
  int error = open_directory(AT_FDCWD, end ? parent : "/", &place->directory);
  if (error == ENOENT && makes_parents) error = walk_to(parent, 1, &place->directory);
  return error;
}

void place_close(Place *place) { close(place->directory); }

int look_at(int directory, const char *name, int is_removed) {
  struct stat status;
  if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW)) return errno;
  if (is_off_limits(&status)) return EPERM;
  return is_removed && S_ISDIR(status.st_mode) && leads_off_limits(&status) ? EPERM : 0;
}

// Changes the mode of the checked file by its name in /proc, because fchmod() takes no O_PATH descriptor.
int change_mode(int directory, const char *name, mode_t mode) {
  struct stat status;
  char path[32];
  const int fd = openat(directory, name, O_PATH | unless_links_are_followed(O_NOFOLLOW) | O_CLOEXEC);
  if (fd < 0) return errno;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  int error = fstat(fd, &status) ? errno : is_off_limits(&status) ? EPERM : 0;
  if (!error && S_ISLNK(status.st_mode)) error = ELOOP;
  if (!error && chmod(path, mode)) error = errno;
  close(fd);
  return error;
}

int change_mode_of(const char *path, mode_t mode) {
  Place place;
  const int error = place_open(path, 0, &place);
  return error ? error : change_mode(place.directory, place.name, mode);
}

int open_file(const char *path, int flags, int *fd) {
  Place place;
  *fd = -1;
  if (!refuses_links) return open_regular(AT_FDCWD, path, flags, fd);
  int error = place_open(path, 0, &place);
  if (error) return error;
  error = open_regular(place.directory, place.name, flags, fd);
  place_close(&place);
  return error;
}

void print_record(int directory, const char *path, const char *name, const struct stat *status) {
  const char type = S_ISREG(status->st_mode) ? 'f'
                  : S_ISDIR(status->st_mode) ? 'd'
                  : S_ISLNK(status->st_mode) ? 'l'
                                             : 'o';
  print_record_of(type, directory, path, name, status);
}

void print_record_of(char type, int directory, const char *path, const char *name, const struct stat *status) {
  char target[PATH_MAX] = "";
  if (S_ISLNK(status->st_mode)) {
    const ssize_t n = readlinkat(directory, path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
  }
  const long long modified = (long long)status->st_mtim.tv_sec * 1000 + status->st_mtim.tv_nsec / 1000000;
  printf("%c%c%lld%c%o%c%lld%c%s%c%s%c", type, 0, (long long)status->st_size, 0, status->st_mode & 07777, 0, modified,
         0, name, 0, target, 0);
}
