#define _GNU_SOURCE
#include "input.h"
#include "events.h"
#include "run_directory.h"
#include "free_path.h"
#include "link.h"
#include "log.h"
#include "memory.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_BYTES = 64 << 10, GROW_AFTER = 1 << 20, GROWN_PIPE = 1 << 20, QUICK_TICKS = 50, SLOW_TICK_MS = 10 };
static const uint64_t NOTHING_REPORTED = UINT64_MAX;

static uint8_t *window; // a ring of INPUT_WINDOW bytes, kept from entry to entry

static struct {
  int is_open; // the entry has an open stdin
  uint8_t id[ID_BYTES];
  int fd;                     // the writing end, -1 when closed; the shell opens the other end by its name
  uint64_t received, written; // bytes from the worker, and to the pipe
  uint64_t reported;          // bytes for which INPUT_TAKEN was sent
  int has_reader, has_ended, reader_closed, reported_closed;
  int is_grown, ticks;
} own = {.fd = -1};

int input_open(void) {
  window = memory_reserve(INPUT_WINDOW);
  return window != 0;
}

static void close_pipe(void) {
  if (own.fd < 0) return;
  close(own.fd);
  own.fd = -1;
}

// Only the keeper has a writing end, so the reader meets the end of the file when the keeper closes it. A writing end
// can be opened only while there is a reading end. So a reading end is opened first, and closed at once, so that the
// pipe shows whether the shell has opened its own reading end.
int input_begin(const uint8_t *id) {
  input_end();
  free_path(path_of("input"));
  if (mkfifo(path_of("input"), 0600)) {
    log_failure("mkfifo");
    return 0;
  }
  const int reader = open(path_of("input"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const int fd = open(path_of("input"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) log_failure("opening the input pipe");
  if (reader >= 0) close(reader);
  if (fd < 0) return 0;
  memset(&own, 0, sizeof own);
  own.fd = fd;
  if (!events_add(fd, EPOLLOUT | EPOLLET, INPUT_PIPE)) {
    close_pipe();
    return 0;
  }
  memcpy(own.id, id, ID_BYTES);
  own.is_open = 1;
  return 1;
}

void input_end(void) {
  if (!own.is_open) return;
  own.is_open = 0;
  close_pipe();
  unlink(path_of("input")); // the user may have removed it
  if (own.received > KEPT_BYTES) memory_release(window + KEPT_BYTES, INPUT_WINDOW - KEPT_BYTES);
}

static size_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Called when the reader has closed its end for good. Drops the rest, and all input that still comes.
static void drop_rest(void) {
  own.reader_closed = 1;
  own.written = own.received;
  close_pipe();
}

static void write_to_pipe(void) {
  if (!own.has_reader) return;
  while (own.fd >= 0 && own.written < own.received) {
    const size_t at = own.written % INPUT_WINDOW;
    const ssize_t n = write(own.fd, window + at, smaller(INPUT_WINDOW - at, own.received - own.written));
    if (n > 0) own.written += n;
    else if (n < 0 && errno == EINTR) continue;
    else if (n < 0 && errno == EAGAIN) break;
    else drop_rest();
  }
  // A larger pipe is faster, but a user's pipes share one budget on the host, so only pipes that stream are enlarged.
  if (!own.is_grown && own.written > GROW_AFTER && own.fd >= 0) {
    fcntl(own.fd, F_SETPIPE_SZ, GROWN_PIPE); // refused beyond the budget: then it keeps its size
    own.is_grown = 1;
  }
  if (own.has_ended && own.written == own.received) close_pipe();
}

static void receive(const uint8_t *from, size_t n) {
  while (n) {
    const size_t at = own.received % INPUT_WINDOW;
    const size_t room = smaller(INPUT_WINDOW - at, INPUT_WINDOW - (own.received - own.written));
    const size_t piece = n < room ? n : room;
    if (!piece) return;
    memcpy(window + at, from, piece);
    own.received += piece;
    from += piece;
    n -= piece;
    write_to_pipe(); // makes room, so that a frame of a whole window fits if the pipe takes its beginning
  }
}

void input_on_frame(const Header *header, const uint8_t *payload) {
  if (!own.is_open || memcmp(header->id, own.id, ID_BYTES)) return;
  const uint64_t end = header->offset + header->length;
  if (header->offset > own.received || end < header->offset) return;
  if (own.reader_closed) {
    if (end > own.received) own.written = own.received = end;
    return;
  }
  if (end > own.received && !own.has_ended) receive(payload + (own.received - header->offset), end - own.received);
  if (header->flags & 1 && end == own.received) own.has_ended = 1;
  write_to_pipe();
}

void input_on_writable(void) {
  if (own.is_open) write_to_pipe();
}

// Polls, because no event reports that the shell has opened the pipe. Before the shell does, a write fails as if the
// reader had gone.
int input_tick(void) {
  if (!own.is_open || own.has_reader || own.fd < 0) return -1;
  struct pollfd p = {.fd = own.fd, .events = POLLOUT};
  if (poll(&p, 1, 0) > 0 && p.revents & POLLERR) return own.ticks++ < QUICK_TICKS ? 1 : SLOW_TICK_MS;
  own.has_reader = 1;
  write_to_pipe();
  return -1;
}

void input_resume(void) {
  own.reported = NOTHING_REPORTED;
  own.reported_closed = 0;
}

int input_send(void) {
  if (!own.is_open || (own.reported == own.written && own.reported_closed == own.reader_closed)) return 1;
  if (!link_put(INPUT_TAKEN, 0, own.reader_closed, own.id, own.written, 0, 0)) return 0;
  own.reported = own.written;
  own.reported_closed = own.reader_closed;
  return 1;
}
