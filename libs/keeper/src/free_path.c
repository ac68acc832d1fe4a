#define _GNU_SOURCE
#include "free_path.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

// A directory is renamed, and keeps its contents.
int free_path(const char *path) {
  static unsigned replaced;
  char aside[192];
  if (!unlink(path) || errno == ENOENT) return 1;
  snprintf(aside, sizeof aside, "%s.replaced-%u", path, ++replaced);
  return !rename(path, aside);
}
