#ifndef RELAY_H
#define RELAY_H

// Connects the stdin and stdout of a program that can open no socket to whoever connects to a socket of this host. The
// last one that connects has the program. What it prints before the first one waits; later, while nobody is there, it
// is dropped, as an engine does it.

// In the launcher, before the program is there.
void relay_open(const char *path);
// In the child, as its final user: stdin and stdout. It ends with the launcher.
void relay_enter(void);
// In the launcher: the first line for the program.
void relay_begin(void);
// Returns when the program has closed its stdout.
void relay_until_end(void);

#endif
