#define _GNU_SOURCE
#include "text.h"
#include "free_path.h"
#include "log.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void text_open(Text *text, const char *path) {
  text->used = 0;
  text->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (text->fd < 0 && free_path(path)) text->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  text->failed = text->fd < 0;
}

static void put(Text *text, const char *bytes, size_t n) {
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

int text_close(Text *text) {
  put(text, text->buffer, text->used);
  if (text->failed) log_failure("writing a file of the folder");
  if (text->fd >= 0) close(text->fd);
  return !text->failed;
}
