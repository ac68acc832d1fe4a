#ifndef MEMORY_H
#define MEMORY_H
#include <stddef.h>

// Returns zeroed memory that is charged only once it is touched, or null, with a message in the log.
void *memory_reserve(size_t bytes);
// Gives touched memory back to the system; it reads as zeros from then on.
void memory_release(void *from, size_t bytes);

#endif
