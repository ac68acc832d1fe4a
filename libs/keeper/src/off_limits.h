// What file operations may not touch: the keeper's own folder. They are told apart by what was really opened (device
// and inode), never by a path, so that no link, and no other way through /proc, leads there.
#ifndef OFF_LIMITS_H
#define OFF_LIMITS_H
#include <sys/stat.h>

void off_limits_open(const char *folder);
// A file that has no name.
void off_limits_add(const struct stat *status);
// In a file operation: no other descriptor of the keeper's stays open, whose files could be reached through /proc.
void off_limits_keep_only(void);
int is_off_limits(const struct stat *status);
// The keeper's folder or a directory above it, which must neither go nor get another name.
int leads_off_limits(const struct stat *status);
// Has either of the two been so?
int off_limits_is_met(void);

#endif
