// A transport carries the bytes of the link: `socket` dials the worker's unix socket, and `stdio` is the keeper's stdin
// and stdout, which the container engine carries to a worker that attaches.
#ifndef TRANSPORT_H
#define TRANSPORT_H

typedef struct {
  // Connects. Sets the descriptors, which do not block and are not inherited. Returns 0 without a connection.
  int (*connect)(int *in, int *out);
  // 1 if the connection can be made again. Else one carries the frames of all workers, each with the sync word.
  int is_renewable;
} Transport;

// Each is called once at most. The path stays the caller's.
const Transport *transport_socket(const char *path);
const Transport *transport_stdio(void);

#endif
