// Makes a path free for a file or FIFO of the keeper's.
#ifndef FREE_PATH_H
#define FREE_PATH_H

// Whatever the user has put there gives way. 0 when it could not.
int free_path(const char *path);

#endif
