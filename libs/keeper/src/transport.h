// How the bytes of the link travel. link.c uses nothing else of a transport.
//
// There are two: `socket` dials the worker's unix socket, and `stdio` is the keeper's own stdin and stdout, which the
// container engine carries to a worker that attaches. A third one that listens for the worker fits in: its connect()
// accepts.
#ifndef TRANSPORT_H
#define TRANSPORT_H

typedef struct {
  // Sets the descriptors, which may be the same, do not block and are not inherited. 0: no connection now, try again
  // later.
  int (*connect)(int *in, int *out);
  // The connection can be closed and made again. Otherwise it is there from the start, once, and carries the frames of
  // one worker after the other: then each frame begins with the sync word.
  int is_renewable;
} Transport;

// Both are to be used once. The path stays the caller's.
const Transport *transport_socket(const char *path);
const Transport *transport_stdio(void);

#endif
