// Writes a small file piece by piece, through one buffer.
#ifndef TEXT_H
#define TEXT_H
#include <stddef.h>

typedef struct {
  int fd;
  int failed;
  size_t used;
  char buffer[4096];
} Text;

// Replaces whatever has this name. Mode 0600.
void text_open(Text *text, const char *path);
void text_add(Text *text, const void *bytes, size_t n);
void text_add_string(Text *text, const char *string);
// In single quotes, for a POSIX shell.
void text_quote(Text *text, const void *bytes, size_t n);
// 0, with a message in the log, when not all of it could be written.
int text_close(Text *text);

#endif
