// What the kernel enforces on this container, as a container can see it.
#ifndef ENFORCED_H
#define ENFORCED_H
#include <stddef.h>

// Writes lines of a name and a value, and returns their length. What cannot be read has no line. `process` is a
// directory of /proc, and `cgroups` the mount of the container's control group, of either version.
size_t enforced_describe(const char *process, const char *cgroups, const char *workspace, char *text, size_t size);

#endif
