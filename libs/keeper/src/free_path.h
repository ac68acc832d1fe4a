// Makes a path free for a file or FIFO of the keeper's.
#ifndef FREE_PATH_H
#define FREE_PATH_H

// Removes or renames what the user has put at the path. Returns 0 on failure.
int free_path(const char *path);

#endif
