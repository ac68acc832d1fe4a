// A transport carries the bytes of the link.
//
// There are two: `socket` dials the worker's unix socket, and `stdio` is the keeper's own stdin and stdout, which the
// container engine carries to a worker that attaches. A third one that listens for the worker fits in: its connect()
// accepts.
#ifndef TRANSPORT_H
#define TRANSPORT_H

typedef struct {
  // Connects. Sets the descriptors, which may be equal, do not block and are not inherited. Returns 0 when there is no
  // connection now.
  int (*connect)(int *in, int *out);
  // Whether the connection can be closed and made again. Otherwise one connection carries the frames of all workers,
  // one worker after the other, and each frame begins with the sync word.
  int is_renewable;
} Transport;

// Each is called once at most. The path stays the caller's.
const Transport *transport_socket(const char *path);
const Transport *transport_stdio(void);

#endif
