// The texts that the shell sources, in files without a name and of a fixed size. Only the keeper changes them, through
// its own mappings. The shell inherits their descriptors and opens them through /proc/self/fd.
//
// SEALED-1. A sealed file can be neither written to nor resized, through any descriptor or path.
// SEALED-2. A shell sources the text that the keeper put there, or is replaced.
#ifndef SEALED_H
#define SEALED_H
#include <stddef.h>
#include <sys/types.h>

// Makes the files. Returns 0 when none could be made.
int sealed_open(void);
// Returns the first descriptor of the texts of commands. At most ten more descriptors follow.
int sealed_first(void);
// Returns the descriptor of the loop, whose text never changes.
int sealed_loop(void);
// Returns the descriptor of the builtin that bash loads.
int sealed_builtin(void);
// Writes the text of the loop. Called once.
int sealed_put_loop(const void *bytes, size_t n);
// Writes the builtin. Called once. Without it bash keeps the loop.
void sealed_put_builtin(const void *bytes, size_t n);
// Frees the files with the texts of the previous entry.
void sealed_clear(void);
// Writes a text into a free file. Returns its descriptor, or -1 when no file is large enough.
int sealed_put_command(const void *bytes, size_t n);
int sealed_put(const void *bytes, size_t n);
// Lets the child that becomes the shell inherit the descriptors, with or without that of the builtin.
void sealed_inherit(int with_builtin);
// Called when there is a new shell.
void sealed_watch(pid_t shell);
// Returns whether the shell holds the descriptors of all texts that were written since the last sealed_clear.
int sealed_is_held(void);
// Returns whether the shell holds the descriptors of all files.
int sealed_all_are_held(void);

#endif
