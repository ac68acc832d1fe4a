// Files of the keeper's directory are off limits for file operations, by device and inode, so through any link or
// /proc.
#ifndef OFF_LIMITS_H
#define OFF_LIMITS_H
#include <sys/stat.h>

void off_limits_open(const char *directory);
// Adds a file that has no name in the directory.
void off_limits_add(const struct stat *status);
// Closes the keeper's other descriptors in the child of a file operation: their files could be reached through /proc.
void off_limits_keep_only(void);
int is_off_limits(const struct stat *status);
// Returns whether it is the keeper's directory or a directory above it, which must not be removed or renamed.
int leads_off_limits(const struct stat *status);
// Returns whether either of the two has returned true so far.
int off_limits_is_met(void);

#endif
