// Lists a directory, or the tree below it, in pages.
#ifndef TREE_H
#define TREE_H
#include "file_operation.h"

// Prints a record of each entry, in the order of the walk: names of a directory as their bytes order them, a directory
// before what is in it. `length`: how deep it goes, 0 for no limit. `data`: the name of the last record of the page
// before. `offset`: about how many bytes a page has. Names are relative to the path. Symbolic links are not followed.
// The type of a directory that would be entered and may not be is `u`. Prints `more` to stderr when the page is full.
int tree_list(const FileOperation *file);

#endif
