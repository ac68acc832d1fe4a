// Attempts to reach addresses that should be out of reach. Nothing is sent over a connection that was made.
#ifndef PROBES_H
#define PROBES_H
#include <stddef.h>
#include <stdint.h>

enum { MOST_PROBES = 16 };

// Begins the attempts, instead of those that still run. The bytes are lines of `probe host:port`, where a host is an
// address, in brackets for IPv6. Other lines are ignored, and so is what is more than MOST_PROBES.
void probes_begin(const uint8_t *bytes, size_t n);
// Ends the attempts that run.
void probes_end(void);
// Looks at the attempts. Returns the ms until the next look, and -1 when none runs.
int probes_look(void);
// Writes the results as lines of `probe host:port result`, and returns their length.
size_t probes_describe(char *text, size_t size);

#endif
