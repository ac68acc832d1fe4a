// Steps that several file operations have in common. Each returns 0 or an errno.
#ifndef FILE_STEPS_H
#define FILE_STEPS_H
#include <stddef.h>
#include <sys/stat.h>

// A name that an operation makes, replaces or removes. Its directory is open, so it remains the checked directory.
typedef struct {
  int directory;
  char name[2 * 4096];
} Place;

// Makes this process refuse, with ELOOP, every path that contains a symbolic link, also as its last name.
void refuse_links(void);
int write_all(int fd, const void *bytes, size_t n);
// Opens a regular file, and refuses anything else.
int open_regular(int directory, const char *path, int flags, int *fd);
int open_file(const char *path, int flags, int *fd);
// Finds the place of a path. With makes_parents, makes missing directories above that first.
int place_open(const char *path, int makes_parents, Place *place);
void place_close(Place *place);
// Refuses the keeper's directory and the files in it. With is_removed, also refuses the directories above it.
int look_at(int directory, const char *name, int is_removed);
int change_mode(int directory, const char *name, mode_t mode);
int change_mode_of(const char *path, mode_t mode);
// Returns the given flags if links are refused, else 0. The flags keep openat() or fstatat() from following a link.
int unless_links_are_followed(int flags);
// Returns the errno for a name that is no directory: ENOTDIR, or ELOOP for a link that is not followed.
int not_a_directory(int directory, const char *name);
// Prints a record: type, size, mode, modified (ms), name, target of a symbolic link, each ended by a zero byte. `path`
// is relative to the open directory.
void print_record(int directory, const char *path, const char *name, const struct stat *status);
void print_record_of(char type, int directory, const char *path, const char *name, const struct stat *status);

#endif
