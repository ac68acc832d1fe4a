// The loop of the process that relays connections from a port of the loopback to a unix socket.
#ifndef FORWARDER_H
#define FORWARDER_H

// Runs in a child of the keeper. Closes all other descriptors.
_Noreturn void forwarder_run(int listening, const char *path);

#endif
