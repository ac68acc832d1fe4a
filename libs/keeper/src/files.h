// File operations, done by a fork of the keeper as the container's user: nothing needs to be in the image for them.
#ifndef FILES_H
#define FILES_H
#include "wire.h"
#include <sys/types.h>

enum FileOperation { FILE_READ = 1, FILE_WRITE = 2, FILE_LIST = 3, FILE_STAT = 4, FILE_REMOVE = 5 };
enum FileFlags { FILE_TRUNCATE = 1, FILE_PARENTS = 2, FILE_RECURSIVE = 4 };

typedef struct {
  uint8_t operation, flags;
  char *path, *rename_to; // rename_to: empty for none
  uint64_t offset, length;
  const uint8_t *data;
  uint32_t data_bytes;
} FileEntry;

// Reads the payload; the paths are copied. 0 when it is not valid.
int file_parse(Cursor *cursor, FileEntry *file);
// A child that does it, result on stdout, words on stderr, and ends with 0 or the errno. -1 when there is no room for
// one.
pid_t file_spawn(const FileEntry *file, int out, int error);

#endif
