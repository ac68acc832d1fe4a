// A transport carries the bytes of the link: `socket` dials the worker's unix socket, `stdio` is the keeper's stdin and
// stdout, which the container engine carries to a worker that attaches, and with `tcp` (listener.h) workers dial the
// keeper.
#ifndef TRANSPORT_H
#define TRANSPORT_H
#include "wire.h"
#include <sys/types.h>

enum TransportKind { OVER_SOCKET, OVER_STDIO, OVER_TCP };

typedef struct {
  // Connects. Sets the descriptors, which do not block and are not inherited. Returns 0 if it cannot connect.
  int (*connect)(int *in, int *out);
  // Functions like read(), write() and close(). A write that fails with EAGAIN is repeated with the same bytes.
  ssize_t (*read)(int fd, void *bytes, size_t n);
  ssize_t (*write)(int fd, const void *bytes, size_t n);
  int (*close)(int fd);
  // 1 if a lost connection can be replaced. Else all workers use one connection, with the sync word before each frame.
  int is_renewable;

  // The following functions are null unless workers dial the keeper.
  // Returns the CLAIM of a worker that has dialled the keeper and proven itself, or null. `connect` takes that worker.
  const Header *(*next_claim)(void);
  // Sends these bytes to the worker of the last next_claim, and drops it.
  void (*refuse)(const uint8_t *bytes, size_t n);
  // Drops peers that take too long. Returns the ms until the next call, or -1 if none is due.
  int (*tick)(void);
  // Closes a fork's copies of everything.
  void (*abandon)(void);
} Transport;

// Returns the transport that the keeper's first argument names.
enum TransportKind transport_kind(const char *address);

// These functions are called once at most. The caller keeps the path valid.
const Transport *transport_socket(const char *path);
const Transport *transport_stdio(void);

#endif
