#define _GNU_SOURCE
#include "bundle.h"
#include "file_steps.h"
#include "wire.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PACK_BYTES = 1 << 20 };

static char path[2 * PATH_MAX];

const char *bundle_path(void) { return path; }

// Sets the path of a name below the operation's directory. Returns 0 when the name is not valid.
static int set_path(const FileOperation *file, const uint8_t *name, size_t n) {
  const size_t base = strlen(file->path);
  if (!n || n >= PATH_MAX || name[0] == '/' || memchr(name, 0, n)) return 0;
  memcpy(path, file->path, base);
  path[base] = '/';
  memcpy(path + base + 1, name, n);
  path[base + 1 + n] = 0;
  return 1;
}

static int make_directory(const Place *place, mode_t mode) {
  struct stat status;
  if (mkdirat(place->directory, place->name, mode) && errno != EEXIST) return errno;
  if (fstatat(place->directory, place->name, &status, unless_links_are_followed(AT_SYMLINK_NOFOLLOW))) return errno;
  return S_ISDIR(status.st_mode) ? change_mode(place->directory, place->name, mode) : ENOTDIR;
}

// Writes a file under another name with the pid, and renames it, so that readers see the old file or the new one.
static int write_file(const Place *place, mode_t mode, const void *bytes, size_t n) {
  char part[64];
  snprintf(part, sizeof part, ".shellfleet-%d.part", getpid());
  const int fd = openat(place->directory, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  int error = write_all(fd, bytes, n);
  if (!error && fchmod(fd, mode)) error = errno;
  if (close(fd) && !error) error = errno; // some file systems report only here that there was no room
  if (!error && renameat(place->directory, part, place->directory, place->name)) error = errno;
  if (error) unlinkat(place->directory, part, 0);
  return error;
}

static int make_link(const Place *place, const uint8_t *target, size_t n) {
  char text[PATH_MAX];
  if (!n || n >= sizeof text || memchr(target, 0, n)) return EINVAL;
  memcpy(text, target, n);
  text[n] = 0;
  int made = symlinkat(text, place->directory, place->name);
  if (made && errno == EEXIST && !unlinkat(place->directory, place->name, 0))
    made = symlinkat(text, place->directory, place->name);
  return made ? errno : 0;
}

static int unpack(uint32_t kind, mode_t mode, const uint8_t *content, size_t n) {
  Place place;
  int error = place_open(path, kind != 'm', &place);
  if (error) return error;
  switch (kind) {
    case 'd': error = make_directory(&place, mode); break;
    case 'f': error = write_file(&place, mode, content, n); break;
    case 'l': error = make_link(&place, content, n); break;
    case 'm': error = change_mode(place.directory, place.name, mode); break;
    default: error = EINVAL;
  }
  place_close(&place);
  return error;
}

int bundle_unpack(const FileOperation *file) {
  Cursor cursor = {.at = file->data, .left = file->data_bytes};
  while (cursor.left) {
    const uint32_t kind = take_u32(&cursor), mode = take_u32(&cursor), name_bytes = take_u32(&cursor);
    const uint32_t content_bytes = take_u32(&cursor);
    const uint8_t *name = take_bytes(&cursor, name_bytes), *content = take_bytes(&cursor, content_bytes);
    if (cursor.bad || !set_path(file, name, name_bytes)) return EINVAL;
    const int error = unpack(kind, mode & 07777, content, content_bytes);
    if (error) return error;
  }
  return 0;
}

static ssize_t read_whole(int fd, char *bytes, size_t room) {
  size_t used = 0;
  for (ssize_t n; used < room && (n = read(fd, bytes + used, room - used)); used += n)
    if (n < 0) return -1;
  return used;
}

// Reads the file at the current path into `bytes`. Reads nothing if the file does not fit.
static int pack(char *bytes, size_t room, struct stat *status, size_t *n) {
  int fd;
  int error = open_file(path, O_RDONLY | O_NOFOLLOW, &fd);
  *n = 0;
  if (!error && fstat(fd, status)) error = errno;
  if (!error && (uint64_t)status->st_size > room) error = EFBIG;
  if (!error) {
    const ssize_t got = read_whole(fd, bytes, room + 1);
    if (got < 0) error = errno;
    else if ((size_t)got > room) error = EFBIG; // it has grown since fstat()
    else *n = got;
  }
  if (fd >= 0) close(fd);
  return error;
}

int bundle_pack(const FileOperation *file) {
  static char bytes[PACK_BYTES + 1];
  size_t room = file->length < PACK_BYTES ? file->length : PACK_BYTES;
  for (const uint8_t *name = file->data, *end = name + file->data_bytes, *stop; name < end; name = stop + 1) {
    stop = memchr(name, 0, end - name);
    if (!stop || !set_path(file, name, stop - name)) return EINVAL;
    struct stat status = {0};
    size_t n;
    const uint32_t head[2] = {pack(bytes, room, &status, &n), status.st_mode & 07777};
    const uint64_t length = n;
    int failed = write_all(1, head, sizeof head);
    if (!failed) failed = write_all(1, &length, sizeof length);
    if (!failed) failed = write_all(1, bytes, n);
    if (failed) return failed;
    room -= n;
  }
  return 0;
}
