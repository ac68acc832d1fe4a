// The directory of the user's shell, as the kernel has it: no variable or alias of the shell decides what is said here.
#ifndef DIRECTORY_H
#define DIRECTORY_H
#include <stddef.h>
#include <stdint.h>

// The path of the shell's directory or, with a `path`, of the directory to which that leads from there, without links.
// Returns its bytes; 0 when there is no such directory any more, or its path does not fit.
size_t directory_describe(uint8_t *text, size_t size, const uint8_t *path, size_t path_bytes);

#endif
