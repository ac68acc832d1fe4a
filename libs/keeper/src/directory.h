// The directory of the user's shell as the kernel has it, whatever the shell's variables or aliases say.
#ifndef DIRECTORY_H
#define DIRECTORY_H
#include <stddef.h>
#include <stdint.h>

// Writes the link-free path of the shell's directory, or of `path` relative to it. Returns the length, or 0 for none.
size_t directory_describe(uint8_t *text, size_t size, const uint8_t *path, size_t path_bytes);

#endif
