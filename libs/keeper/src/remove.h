// Removes a file, or a directory with all that is in it, however deep.
#ifndef REMOVE_H
#define REMOVE_H

// Never through a symbolic link. 0 or an errno.
int remove_at(int folder, const char *name, int recursive);

#endif
