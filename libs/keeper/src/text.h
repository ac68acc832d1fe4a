// Writes a small file, or a text that the shell sources, piece by piece, through one buffer.
#ifndef TEXT_H
#define TEXT_H
#include <stddef.h>

typedef struct {
  int fd; // -1: the text is collected in memory
  int failed;
  size_t used;
  char buffer[4096];
  char *collected;
  size_t length;
} Text;

// Begins a text in memory, for text_seal.
void text_collect(Text *text);
// Puts the collected text into a sealed file. Returns its descriptor, or -1.
int text_seal(Text *text);
// Makes the collected text the shell's loop. Returns 0 on failure.
int text_seal_loop(Text *text);
// Begins a file with mode 0600, which replaces any file of this name.
void text_open(Text *text, const char *path);
void text_add(Text *text, const void *bytes, size_t n);
void text_add_string(Text *text, const char *string);
// Adds the bytes in single quotes, for a POSIX shell.
void text_quote(Text *text, const void *bytes, size_t n);
// Closes the file. Returns 0, with a message in the log, when not all of it could be written.
int text_close(Text *text);

#endif
