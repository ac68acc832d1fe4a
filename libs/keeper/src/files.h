// File operations, done by a fork of the keeper as the container's user. They need no program in the image.
#ifndef FILES_H
#define FILES_H
#include "file_operation.h"
#include "wire.h"
#include <sys/types.h>

// Reads the payload of FILE_CALL and copies the paths. Returns 0 when the payload is not valid.
int file_parse(Cursor *cursor, FileOperation *file);
// Forks a child that does the operation, prints its reply to `out` and a message to `error`, and exits with 0 or an
// errno. Returns its pid, or -1.
pid_t file_spawn(const FileOperation *file, int out, int error);

#endif
