// A transport carries the bytes of the link: `socket` dials the worker's unix socket, and `stdio` is the keeper's stdin
// and stdout, which the container engine carries to a worker that attaches.
#ifndef TRANSPORT_H
#define TRANSPORT_H

typedef struct {
  // Connects. Sets the descriptors, which do not block and are not inherited. Returns 0 if it cannot connect.
  int (*connect)(int *in, int *out);
  // 1 if a lost connection can be replaced. Else all workers use one connection, with the sync word before each frame.
  int is_renewable;
} Transport;

// These functions are called once at most. The caller keeps the path valid.
const Transport *transport_socket(const char *path);
const Transport *transport_stdio(void);

#endif
