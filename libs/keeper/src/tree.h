// Lists a directory, or the tree below it, in pages.
#ifndef TREE_H
#define TREE_H
#include "file_operation.h"

// Prints a record of each entry in the order of the walk: names by their bytes, a directory before its contents.
// `length` is the depth, 0 for no limit; `data` the last name of the page before; `offset` the approximate page size in
// bytes. A directory that cannot be entered has the type `u`. Prints `more` to stderr when the page is full.
int tree_list(const FileOperation *file);

#endif
