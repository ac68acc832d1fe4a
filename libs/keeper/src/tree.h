// Lists a directory, or the tree below it, in pages.
#ifndef TREE_H
#define TREE_H
#include "file_operation.h"

// Prints a record of each entry, in the order of the walk: names of a directory as their bytes order them, a directory
// before what is in it. `length` is the depth, 0 for no limit; `data` the name of the last record of the page before;
// `offset` the approximate size of a page in bytes. Names are relative to the path. Symbolic links are not followed. A
// directory that should be entered and cannot be has the type `u`. Prints `more` to stderr when the page is full.
int tree_list(const FileOperation *file);

#endif
