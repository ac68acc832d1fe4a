// Removes a file, or a directory with all that is in it, however deep.
#ifndef REMOVE_H
#define REMOVE_H

// Follows no symbolic link. Returns 0 or an errno.
int remove_at(int directory, const char *name, int recursive);

#endif
