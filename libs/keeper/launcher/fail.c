#include "fail.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures = 2;

void report_failures_to(int fd) { failures = fd; }

void fail(const char *format, ...) {
  char text[512];
  const int error = errno;
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(text, sizeof text - 64, format, arguments);
  va_end(arguments);
  if (n > (int)sizeof text - 64) n = sizeof text - 64;
  n += snprintf(text + n, 64, error ? ": %s\n" : "\n", strerror(error));
  _exit(write(failures, text, n) == n ? 1 : 2);
}
