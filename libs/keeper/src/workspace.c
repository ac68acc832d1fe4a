#define _GNU_SOURCE
#include "workspace.h"
#include "log.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int workspace_is_expected(void) {
  const char *expected = getenv("SF_WORKSPACE");
  if (!expected) return 1;
  char *end;
  const unsigned long long device = strtoull(expected, &end, 10);
  const unsigned long long inode = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
  const char *path = *end == ':' ? end + 1 : "";
  struct stat mounted;
  if (!stat(path, &mounted) && S_ISDIR(mounted.st_mode) && mounted.st_dev == device && mounted.st_ino == inode) {
    unsetenv("SF_WORKSPACE");
    return 1;
  }
  log_message("the directory mounted at %s is not the one that was checked", path);
  return 0;
}
