#define _GNU_SOURCE
#include "log.h"
#include "clock.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 32, MESSAGE_BYTES = 160, REPEAT_AFTER_MS = 10000 };

static struct {
  char text[MESSAGES][MESSAGE_BYTES];
  uint32_t written, sent; // numbers of messages
  uint64_t last_at;       // when the last one was written
} own;

static char *slot(uint32_t number) { return own.text[number % MESSAGES]; }

// Returns whether the text repeats the last message within 10 s, because a failure may recur many times a second.
static int is_repeated(const char *text) {
  return own.written && !strcmp(text, slot(own.written)) && now_ms() - own.last_at < REPEAT_AFTER_MS;
}

static void add(const char *text) {
  if (is_repeated(text)) return;
  own.written++;
  own.last_at = now_ms();
  snprintf(slot(own.written), MESSAGE_BYTES, "%s", text);
  if (own.written - own.sent > MESSAGES) own.sent = own.written - MESSAGES;
  // The message also goes to stderr, for a person who runs the keeper by hand. A failure of this write cannot be
  // reported.
  char line[MESSAGE_BYTES + 16];
  const int n = snprintf(line, sizeof line, "keeper: %s\n", slot(own.written));
  if (write(2, line, n) < 0) return;
}

void log_message(const char *format, ...) {
  const int error = errno;
  char text[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  add(text);
  errno = error;
}

void log_failure(const char *what) { log_message("%s: %s", what, strerror(errno)); }

const char *log_unsent(uint32_t *number) {
  if (own.sent == own.written) return 0;
  *number = own.sent + 1;
  return slot(*number);
}

void log_sent(void) { own.sent++; }
