#define _GNU_SOURCE
#include "install.h"
#include "wire.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int code_of_write(void) {
  return errno == ENOSPC || errno == EDQUOT ? EXIT_INSTALL_NO_SPACE : EXIT_INSTALL_NOT_WRITTEN;
}

static int copy(int from, int to) {
  static char bytes[64 << 10];
  for (;;) {
    const ssize_t n = read(from, bytes, sizeof bytes);
    if (n < 0) return EXIT_INSTALL_NOT_READ;
    if (!n) return 0;
    for (ssize_t at = 0; at < n;) {
      const ssize_t written = write(to, bytes + at, n - at);
      if (written < 0) return code_of_write();
      at += written;
    }
  }
}

int install(const char *path) {
  char draft[PATH_MAX];
  if (snprintf(draft, sizeof draft, "%s.new", path) >= (int)sizeof draft) return EXIT_INSTALL_NOT_WRITTEN;
  const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (from < 0) return EXIT_INSTALL_NOT_READ;
  unlink(draft); // fails if there is none
  const int to = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (to < 0) return code_of_write();
  const int failure = copy(from, to);
  if (failure || fchmod(to, 0555) || close(to) || rename(draft, path)) {
    const int code = failure ? failure : code_of_write();
    unlink(draft);
    return code;
  }
  return 0;
}
