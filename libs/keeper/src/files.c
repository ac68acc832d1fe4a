#define _GNU_SOURCE
#include "files.h"
#include "bundle.h"
#include "child.h"
#include "file_steps.h"
#include "off_limits.h"
#include "remove.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10 };

static char path_copy[PATH_MAX], rename_copy[PATH_MAX];

static int take_path(Cursor *cursor, size_t n, char *copy) {
  const uint8_t *bytes = take_bytes(cursor, n);
  if (!bytes || n >= PATH_MAX || memchr(bytes, 0, n)) return 0;
  memcpy(copy, bytes, n);
  copy[n] = 0;
  return 1;
}

int file_parse(Cursor *cursor, FileOperation *file) {
  file->timeout_ms = take_u32(cursor);
  const uint32_t type = take_u32(cursor), flags = take_u32(cursor);
  const uint32_t path_bytes = take_u32(cursor), rename_bytes = take_u32(cursor);
  file->type = type;
  file->flags = flags;
  file->offset = take_u64(cursor);
  file->length = take_u64(cursor);
  if (cursor->bad || type < FILE_READ || type > FILE_PACK || flags > 31) return 0;
  if (file->offset > INT64_MAX || file->length > INT64_MAX) return 0;
  if (!take_path(cursor, path_bytes, path_copy) || !take_path(cursor, rename_bytes, rename_copy)) return 0;
  file->path = path_copy;
  file->rename_to = rename_copy;
  file->data_bytes = cursor->left;
  file->data = take_bytes(cursor, cursor->left);
  return path_copy[0] == '/' && (!rename_copy[0] || rename_copy[0] == '/');
}

// Prints the bytes of the range to stdout, and the whole file's size (decimal) and mode (octal) to stderr.
static int read_range(const FileOperation *file) {
  static char piece[PIECE_BYTES];
  struct stat status;
  int fd;
  const int error = open_file(file->path, O_RDONLY, &fd);
  if (error) return error;
  if (fstat(fd, &status)) return errno;
  const int digits = snprintf(piece, sizeof piece, "%lld %o", (long long)status.st_size, status.st_mode & 07777);
  const int unwritten = write_all(2, piece, digits);
  if (unwritten) return unwritten;
  uint64_t offset = file->offset, left = file->length;
  while (left) {
    const ssize_t n = pread(fd, piece, left < sizeof piece ? left : sizeof piece, offset);
    if (n < 0) return errno;
    if (n == 0) break;
    const int failed = write_all(1, piece, n);
    if (failed) return failed;
    offset += n;
    left -= n;
  }
  return 0;
}

// Opens the file to which the parts are written. Checks an existing file before it is emptied.
static int open_part(const Place *place, const FileOperation *file, int *fd) {
  const int is_later_part = file->offset > 0;
  int error = open_regular(place->directory, place->name, O_WRONLY, fd);
  if (error == ENOENT && is_later_part) return ESTALE;
  if (error == ENOENT) error = open_regular(place->directory, place->name, O_WRONLY | O_CREAT | O_EXCL, fd);
  if (error) return error;
  // A later part continues a file that ends where the part begins. After a failure or in a new sandbox no file does.
  struct stat part;
  if (fstat(*fd, &part)) return errno;
  if (is_later_part && (uint64_t)part.st_size != file->offset) return ESTALE;
  if (file->flags & FILE_TRUNCATE && ftruncate(*fd, 0)) return errno;
  return lseek(*fd, file->offset, SEEK_SET) < 0 ? errno : 0;
}

// Renames the written file to its target. `old` is the file that it replaces, or null.
static int put_in_place(const FileOperation *file, int fd, const Place *part, const struct stat *old) {
  Place target;
  int error = place_open(file->rename_to, 0, &target);
  if (error) return error;
  const mode_t mode = file->flags & FILE_MODE ? file->length & 07777 : old ? old->st_mode & 07777 : 0644;
  const int has_mode = file->flags & FILE_MODE || old; // a replaced script stays executable
  if (has_mode && fchmod(fd, mode)) error = errno;
  if (!error && renameat(part->directory, part->name, target.directory, target.name)) error = errno;
  place_close(&target);
  return error;
}

static int write_range(const FileOperation *file) {
  const char *target = file->rename_to[0] ? file->rename_to : file->path;
  struct stat old;
  const int exists = !stat(target, &old);
  if (exists && S_ISDIR(old.st_mode)) return EISDIR;
  if (target[strlen(target) - 1] == '/') return EISDIR;
  Place place;
  int fd;
  int error = place_open(file->path, file->flags & FILE_PARENTS, &place);
  if (error) return error == ENOENT && file->offset > 0 ? ESTALE : error;
  error = open_part(&place, file, &fd);
  if (error) return error;
  error = write_all(fd, file->data, file->data_bytes);
  if (!error && file->rename_to[0]) error = put_in_place(file, fd, &place, exists && S_ISREG(old.st_mode) ? &old : 0);
  if (close(fd) && !error) error = errno; // some file systems report only here that there was no room
  // Nobody continues a file after a failed part, and on a full disk its parts would keep it full.
  if (error) unlinkat(place.directory, place.name, 0);
  return error;
}

static int describe(const FileOperation *file) {
  struct stat status;
  Place place;
  const int error = place_open(file->path, 0, &place);
  if (error) return error;
  if (fstatat(place.directory, place.name, &status, AT_SYMLINK_NOFOLLOW)) return errno;
  if (is_off_limits(&status)) return EPERM;
  const char *slash = strrchr(file->path, '/');
  print_record(place.directory, place.name, slash && slash[1] ? slash + 1 : file->path, &status);
  return fflush(stdout) ? errno : 0;
}

static int make_directory(const FileOperation *file) {
  Place place;
  struct stat status;
  const int error = place_open(file->path, 1, &place);
  if (error) return error;
  if (!mkdirat(place.directory, place.name, 0755)) return 0;
  const int failed = errno;
  if (fstatat(place.directory, place.name, &status, unless_links_are_followed(AT_SYMLINK_NOFOLLOW))) return failed;
  return S_ISDIR(status.st_mode) ? 0 : not_a_directory(place.directory, place.name);
}

static int rename_path(const FileOperation *file) {
  Place from, to;
  int error = place_open(file->path, 0, &from);
  if (!error) error = look_at(from.directory, from.name, 1);
  if (!error) error = place_open(file->rename_to, 1, &to);
  if (error) return error;
  return renameat(from.directory, from.name, to.directory, to.name) ? errno : 0;
}

static int remove_path(const FileOperation *file) {
  Place place;
  int error = place_open(file->path, 0, &place);
  if (!error) error = look_at(place.directory, place.name, 1);
  return error ? error : remove_at(place.directory, place.name, file->flags & FILE_RECURSIVE);
}

static int run(const FileOperation *file) {
  int error = EINVAL;
  if (file->flags & FILE_EXACT) refuse_links();
  switch (file->type) {
    case FILE_READ: error = read_range(file); break;
    case FILE_WRITE: error = write_range(file); break;
    case FILE_LIST: error = tree_list(file); break;
    case FILE_STAT: error = describe(file); break;
    case FILE_REMOVE: error = remove_path(file); break;
    case FILE_MAKE_DIRECTORY: error = make_directory(file); break;
    case FILE_RENAME: error = rename_path(file); break;
    case FILE_CHANGE_MODE: error = change_mode_of(file->path, file->length & 07777); break;
    case FILE_UNPACK: error = bundle_unpack(file); break;
    case FILE_PACK: error = bundle_pack(file); break;
  }
  const char *path = file->type == FILE_UNPACK ? bundle_path() : file->path;
  if (error == EPERM && off_limits_is_met())
    fprintf(stderr, "%s: the directory of the session's keeper is not for file operations\n", path);
  else if (error == EACCES || error == EPERM)
    fprintf(stderr, "%s: %s for uid %d\n", path, strerror(error), (int)geteuid());
  else if (error) fprintf(stderr, "%s: %s\n", path, strerror(error));
  return error;
}

pid_t file_spawn(const FileOperation *file, int out, int error) {
  const pid_t child = fork();
  if (child) return child;
  child_setup();
  dup2(out, 1);
  dup2(error, 2);
  off_limits_keep_only();
  _exit(run(file) & 0xff);
}
