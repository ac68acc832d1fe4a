// The texts that the shell sources: in files without a name, of a fixed size, that nobody can write to or resize. Only
// the keeper changes them, through mappings that no other process has. The shell and what it starts inherit descriptors
// of them; it opens them by their numbers in /proc/self/fd.
//
// SEALED-1. Once sealed, a file takes no write and no change of size, whoever opens it and however.
// SEALED-2. What a shell is about to source is what the keeper put there, or the shell is replaced.
#ifndef SEALED_H
#define SEALED_H
#include <stddef.h>
#include <sys/types.h>

// 0 when not one of them could be made.
int sealed_open(void);
// The descriptors of commands are this number and the ten that follow at most.
int sealed_first(void);
// Returns the descriptor of the loop, whose text never changes.
int sealed_loop(void);
// Puts the text of the loop in its place, once.
int sealed_put_loop(const void *bytes, size_t n);
// The texts of the entry before are not needed any more.
void sealed_clear(void);
// Each returns a descriptor, or -1 when there is no room for so much.
int sealed_put_command(const void *bytes, size_t n);
int sealed_put(const void *bytes, size_t n);
// In the child that becomes the shell.
void sealed_inherit(void);
// There is a new shell.
void sealed_watch(pid_t shell);
// Does it still hold all that was put since the last sealed_clear?
int sealed_is_held(void);
// Does it hold all that there are?
int sealed_all_are_held(void);

#endif
