// The loop of the process that relays connections from a port of the loopback to a unix socket.
#ifndef FORWARDER_H
#define FORWARDER_H

// For a child of the keeper. Keeps no other descriptor open.
_Noreturn void forwarder_run(int listening, const char *path);

#endif
