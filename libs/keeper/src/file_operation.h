// The fields of a file operation.
#ifndef FILE_OPERATION_H
#define FILE_OPERATION_H
#include <stdint.h>

enum FileOperationType {
  FILE_READ = 1,
  FILE_WRITE = 2,
  FILE_LIST = 3,
  FILE_STAT = 4,
  FILE_REMOVE = 5,
  FILE_MAKE_DIRECTORY = 6,
  FILE_RENAME = 7,
  FILE_CHANGE_MODE = 8,
  FILE_UNPACK = 9,
  FILE_PACK = 10,
};
// With FILE_MODE, a write sets the mode in `length`. With FILE_EXACT, a path with a symbolic link or `..` is refused.
enum FileFlags { FILE_TRUNCATE = 1, FILE_PARENTS = 2, FILE_RECURSIVE = 4, FILE_MODE = 8, FILE_EXACT = 16 };

typedef struct {
  uint32_t timeout_ms; // 0: no limit
  uint8_t type, flags;
  char *path, *rename_to; // rename_to: empty for none
  uint64_t offset, length;
  const uint8_t *data; // it points into the payload
  uint32_t data_bytes;
} FileOperation;

#endif
