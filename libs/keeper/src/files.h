// File operations, done by a fork of the keeper as the container's user: nothing needs to be in the image for them.
#ifndef FILES_H
#define FILES_H
#include "file_entry.h"
#include "wire.h"
#include <sys/types.h>

// Reads the payload; the paths are copied. 0 when it is not valid.
int file_parse(Cursor *cursor, FileEntry *file);
// A child that does it, result on stdout, words on stderr, and ends with 0 or the errno. -1 when there is no room for
// one.
pid_t file_spawn(const FileEntry *file, int out, int error);

#endif
