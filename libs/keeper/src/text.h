// Writes a small file, or a text that the shell sources, piece by piece, through one buffer.
#ifndef TEXT_H
#define TEXT_H
#include <stddef.h>

typedef struct {
  int fd; // -1: it is collected
  int failed;
  size_t used;
  char buffer[4096];
  char *collected;
  size_t length;
} Text;

// Instead of a file: for text_seal.
void text_collect(Text *text);
// Puts what was collected into a sealed file. Its descriptor, or -1.
int text_seal(Text *text);
// Makes it the loop. 0 when it could not be.
int text_seal_loop(Text *text);
// Replaces whatever has this name. Mode 0600.
void text_open(Text *text, const char *path);
void text_add(Text *text, const void *bytes, size_t n);
void text_add_string(Text *text, const char *string);
// In single quotes, for a POSIX shell.
void text_quote(Text *text, const void *bytes, size_t n);
// 0, with a message in the log, when not all of it could be written.
int text_close(Text *text);

#endif
