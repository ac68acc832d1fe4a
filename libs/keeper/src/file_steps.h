// Steps that several file operations have in common. Each returns 0 or an errno.
#ifndef FILE_STEPS_H
#define FILE_STEPS_H
#include <stddef.h>
#include <sys/stat.h>

// Where an operation makes, replaces or removes a name: the open directory, and the name in it. The directory stays the
// one that was looked at, whatever happens to its path meanwhile.
typedef struct {
  int folder;
  char name[2 * 4096];
} Place;

// From now on, paths are taken as they are: a symbolic link on one, or at its end, is refused with ELOOP.
void refuse_links(void);
int write_all(int fd, const void *bytes, size_t n);
// Refuses what is not a regular file.
int open_regular(int folder, const char *path, int flags, int *fd);
int open_file(const char *path, int flags, int *fd);
// Finds the place of a path, with makes_parents after the directories above it have been made.
int place_open(const char *path, int makes_parents, Place *place);
void place_close(Place *place);
// Refuses the keeper's own folder, what is in it, and with is_removed what it is in.
int look_at(int folder, const char *name, int is_removed);
int change_mode(int folder, const char *name, mode_t mode);
int change_mode_of(const char *path, mode_t mode);
// Takes the flags of openat() or fstatat() that keep it from following a link, and returns those that hold.
int unless_links_are_followed(int flags);
// ENOTDIR, or ELOOP for a link that is not followed.
int not_a_folder(int folder, const char *name);
// Prints a record: type, size, mode, modified (ms), name, target of a symbolic link, each ended by a zero byte. Names
// are bytes. `path` is relative to the open folder.
void say_record(int folder, const char *path, const char *name, const struct stat *status);
void say_record_of(char type, int folder, const char *path, const char *name, const struct stat *status);

#endif
