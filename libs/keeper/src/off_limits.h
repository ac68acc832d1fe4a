// Files of the keeper's directory are off limits for file operations. They are recognised by device and inode, so also
// when they are reached through a link or /proc.
#ifndef OFF_LIMITS_H
#define OFF_LIMITS_H
#include <sys/stat.h>

void off_limits_open(const char *directory);
// Adds a file that has no name in the directory.
void off_limits_add(const struct stat *status);
// Keeps only the streams and the directory open in the child of a file operation, because /proc leads to open files.
void off_limits_keep_only(void);
int is_off_limits(const struct stat *status);
// Returns whether this is the keeper's directory or a directory above that, which must not be removed or renamed.
int leads_off_limits(const struct stat *status);
// Returns whether is_off_limits or leads_off_limits has returned true so far.
int off_limits_is_met(void);

#endif
