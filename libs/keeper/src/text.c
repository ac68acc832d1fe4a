#define _GNU_SOURCE
#include "text.h"
#include "free_path.h"
#include "log.h"
#include "sealed.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void text_open(Text *text, const char *path) {
  text->used = 0;
  text->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (text->fd < 0 && free_path(path)) text->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  text->failed = text->fd < 0;
}

void text_collect(Text *text) {
  text->fd = -1;
  text->failed = 0;
  text->used = text->length = 0;
  text->collected = 0;
}

static void collect(Text *text, const char *bytes, size_t n) {
  char *more = n ? realloc(text->collected, text->length + n) : text->collected;
  if (n && !more) text->failed = 1;
  if (!n || !more) return;
  memcpy(more + text->length, bytes, n);
  text->collected = more;
  text->length += n;
}

static void put(Text *text, const char *bytes, size_t n) {
  if (text->fd < 0 && !text->failed) {
    collect(text, bytes, n);
    return;
  }
  while (n && !text->failed) {
    const ssize_t written = write(text->fd, bytes, n);
    if (written <= 0) text->failed = 1;
    else bytes += written, n -= written;
  }
}

void text_add(Text *text, const void *bytes, size_t n) {
  if (text->used + n > sizeof text->buffer) {
    put(text, text->buffer, text->used);
    text->used = 0;
  }
  if (n > sizeof text->buffer) {
    put(text, bytes, n);
  } else if (n) {
    memcpy(text->buffer + text->used, bytes, n);
    text->used += n;
  }
}

void text_add_string(Text *text, const char *string) { text_add(text, string, strlen(string)); }

void text_quote(Text *text, const void *bytes, size_t n) {
  const char *from = bytes, *end = from + n;
  text_add_string(text, "'");
  while (from < end) {
    const char *quote = memchr(from, '\'', end - from);
    text_add(text, from, (quote ? quote : end) - from);
    if (!quote) break;
    text_add_string(text, "'\\''");
    from = quote + 1;
  }
  text_add_string(text, "'");
}

static int end_of(Text *text, int (*place)(const void *, size_t)) {
  put(text, text->buffer, text->used);
  const int placed = text->failed ? -1 : place(text->collected ? text->collected : "", text->length);
  free(text->collected);
  return placed;
}

int text_seal(Text *text) { return end_of(text, sealed_put); }
int text_seal_loop(Text *text) { return end_of(text, sealed_put_loop) > 0; }

int text_close(Text *text) {
  put(text, text->buffer, text->used);
  if (text->failed) log_failure("writing a file of the directory");
  if (text->fd >= 0) close(text->fd);
  return !text->failed;
}
