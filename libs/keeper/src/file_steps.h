// Steps that several file operations have in common. Each returns 0 or an errno.
#ifndef FILE_STEPS_H
#define FILE_STEPS_H
#include <stddef.h>
#include <sys/stat.h>

int write_all(int fd, const void *bytes, size_t n);
// Refuses what is not a regular file.
int open_regular(const char *path, int flags, int *fd);
// Makes the directories above the path.
int make_parents(const char *path);
// Prints a record: type, size, mode, modified (ms), name, target of a symbolic link, each ended by a zero byte. Names
// are bytes. `path` is relative to the open folder.
void say_record(int folder, const char *path, const char *name, const struct stat *status);
void say_record_of(char type, int folder, const char *path, const char *name, const struct stat *status);

#endif
