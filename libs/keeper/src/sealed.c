#define _GNU_SOURCE
#include "sealed.h"
#include "log.h"
#include "off_limits.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// First descriptors of the files, which scripts do not use for locks and logs (9, 99, 100, 200). The lower numbers
// are for a process that may have fewer descriptors.
static const int FIRST[] = {230, 150, 40};

// A text takes the smallest file that fits, filled up with blanks, because a shell reads the whole file at about 6 ns a
// byte. There are at most ten files for scripts, for which the run token has one digit.
enum { COMMANDS = 8, OTHERS = 6, FILES = COMMANDS + OTHERS };
static const size_t SIZES[FILES] = {64,         256, 1 << 10, 4 << 10, 16 << 10, 64 << 10,   256 << 10,
                                    1088 << 10, 256, 1 << 10, 8 << 10, 64 << 10, 1280 << 10, 6 << 20};
static const unsigned ALL_SEALS = F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

static struct {
  int first;
  struct SealedFile {
    char *bytes; // null: it could not be made
    size_t used; // bytes of text; the rest is blanks
    int is_taken;
    struct stat status;
  } files[FILES];
  int has_loop, has_builtin;
  pid_t shell;
  int held; // the shell's /proc/<pid>/fd; -1: not opened yet
} own = {.held = -1};

// Moves the descriptor to a number that no script uses.
static int move_to(int fd, int number) {
  const int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, number);
  if (fd >= 0) close(fd);
  if (moved == number || moved < 0) return moved;
  close(moved);
  return -1;
}

// Before Linux 5.1, and with another kernel, a file cannot be sealed against later writes only. Its mode is read-only
// then, and file operations cannot change it.
static void seal(int fd) {
  if (!fcntl(fd, F_ADD_SEALS, ALL_SEALS)) return;
  log_failure("sealing the scripts of commands against other processes of the session");
  fchmod(fd, 0400);
  fcntl(fd, F_ADD_SEALS, ALL_SEALS & ~F_SEAL_FUTURE_WRITE);
}

static int make(int index) {
  struct SealedFile *file = &own.files[index];
  const int fd = move_to(memfd_create("script", MFD_CLOEXEC | MFD_ALLOW_SEALING), own.first + index);
  if (fd < 0) return 0;
  void *bytes = MAP_FAILED;
  if (!ftruncate(fd, SIZES[index])) bytes = mmap(0, SIZES[index], PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED || madvise(bytes, SIZES[index], MADV_DONTFORK) || fstat(fd, &file->status)) {
    close(fd);
    return 0;
  }
  seal(fd);
  off_limits_add(&file->status);
  file->bytes = bytes;
  file->used = SIZES[index];
  return 1;
}

int sealed_open(void) {
  const long most = sysconf(_SC_OPEN_MAX);
  size_t i = 0;
  while (i + 1 < sizeof FIRST / sizeof *FIRST && FIRST[i] + FILES >= most) i++;
  own.first = FIRST[i];
  int made = 0;
  for (int k = 0; k < FILES; k++) made += make(k); // a large one may be beyond a limit of the size of files
  if (made < FILES) log_failure("making room for the largest scripts");
  return made > 0;
}

int sealed_first(void) { return own.first; }
int sealed_loop(void) { return own.first + FILES; }

int sealed_builtin(void) { return sealed_loop() + 1; }

// Writes a file that never changes.
static int put_for_good(const char *name, int number, const void *bytes, size_t n) {
  struct stat status;
  const int fd = move_to(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), number);
  const int is_put = fd >= 0 && write(fd, bytes, n) == (ssize_t)n &&
                     !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) &&
                     !fstat(fd, &status);
  if (is_put) off_limits_add(&status);
  return is_put;
}

int sealed_put_loop(const void *bytes, size_t n) {
  if (!own.has_loop) own.has_loop = put_for_good("loop", sealed_loop(), bytes, n);
  if (!own.has_loop) log_failure("sealing the loop of the shell");
  return own.has_loop;
}

void sealed_put_builtin(const void *bytes, size_t n) {
  own.has_builtin = put_for_good("builtin", sealed_builtin(), bytes, n);
  if (!own.has_builtin) log_failure("sealing the builtin of bash");
}

void sealed_clear(void) {
  for (int i = 0; i < FILES; i++) own.files[i].is_taken = 0;
}

static int put(int last, const void *bytes, size_t n) {
  int best = -1;
  for (int i = 0; i < last; i++) {
    const struct SealedFile *file = &own.files[i];
    if (file->bytes && !file->is_taken && SIZES[i] > n && (best < 0 || SIZES[i] < SIZES[best])) best = i;
  }
  if (best < 0) return -1;
  struct SealedFile *file = &own.files[best];
  memcpy(file->bytes, bytes, n);
  file->bytes[n] = '\n';
  if (file->used > n + 1) memset(file->bytes + n + 1, ' ', file->used - n - 1);
  file->used = n + 1;
  file->is_taken = 1;
  return own.first + best;
}

int sealed_put_command(const void *bytes, size_t n) { return put(COMMANDS, bytes, n); }
int sealed_put(const void *bytes, size_t n) { return put(FILES, bytes, n); }

void sealed_inherit(int with_builtin) {
  const int last = with_builtin ? sealed_builtin() : sealed_loop();
  for (int fd = own.first; fd <= last; fd++) fcntl(fd, F_SETFD, 0); // fails for one that does not exist
}

void sealed_watch(pid_t shell) {
  if (own.held >= 0) close(own.held);
  own.held = -1;
  own.shell = shell;
}

// Opens the directory of the shell's descriptors. Does so once, because every command checks one of them.
static int open_held(void) {
  char path[32];
  if (own.held >= 0) return 1;
  snprintf(path, sizeof path, "/proc/%d/fd", own.shell);
  own.held = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return own.held >= 0;
}

static int stat_held(int fd, struct stat *status) {
  char number[16];
  snprintf(number, sizeof number, "%d", fd);
  return fstatat(own.held, number, status, 0);
}

static int are_held(int all) {
  if (!open_held()) return 0;
  struct stat held;
  for (int i = 0; i < FILES; i++) {
    const struct SealedFile *file = &own.files[i];
    if (!(all ? file->bytes != 0 : file->is_taken)) continue;
    if (stat_held(own.first + i, &held)) {
      if (errno == EACCES || errno == EPERM) continue; // a shell whose program its user may not read
      return 0;
    }
    if (held.st_dev != file->status.st_dev || held.st_ino != file->status.st_ino) return 0;
  }
  return !all || !own.has_loop || !stat_held(sealed_loop(), &held) || errno != ENOENT;
}

int sealed_is_held(void) { return are_held(0); }
int sealed_all_are_held(void) { return are_held(1); }
