#ifndef RELAY_H
#define RELAY_H

// Connects the stdin and stdout of a program that can open no socket to a socket of this host. A new connection
// replaces the last. Output waits for the first connection. After that, output is dropped while there is no connection.

// Opens the socket, in the launcher, before the program starts.
void relay_open(const char *path);
// Sets stdin and stdout in the child, which already runs as its final user. The child is killed when the launcher ends.
void relay_enter(void);
// Prepares the first line for the program, `<SF_TOKEN> <SF_SYNC>`, in the launcher.
void relay_begin(void);
// Relays until the program has closed its stdout.
void relay_until_end(void);

#endif
