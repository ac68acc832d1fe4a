#define _GNU_SOURCE
#include "late.h"
#include "clock.h"
#include "events.h"
#include "link.h"
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 32 << 10, BURST_BYTES = 1 << 20, BYTES_PER_MS = 1 << 10, PAUSE_MS = 50 };

typedef struct {
  int fd; // -1: free
  int stream, is_readable, is_quiet;
  uint8_t id[ID_BYTES];
  uint64_t offset;
} LatePipe;

static LatePipe late[MAX_LATE];
static int count; // number of pipes in use

static struct {
  uint64_t bytes, counted_at;
} allowance = {.bytes = BURST_BYTES};

void late_open(void) {
  for (int i = 0; i < MAX_LATE; i++) late[i].fd = -1;
}

int late_is_open(void) { return count > 0; }

static void free_pipe(LatePipe *pipe) {
  close(pipe->fd);
  pipe->fd = -1;
  count--;
}

// Finds a slot. Closes the oldest pipe if all are in use, which is rare, because the limit of processes limits pipes.
static int free_slot(void) {
  for (int i = 0; i < MAX_LATE; i++)
    if (late[i].fd < 0) return i;
  free_pipe(&late[0]);
  return 0;
}

void late_add(int fd, int stream, const uint8_t *id, uint64_t offset, int is_quiet) {
  const int slot = free_slot();
  late[slot] = (LatePipe){.fd = fd, .stream = stream, .is_readable = 1, .is_quiet = is_quiet, .offset = offset};
  memcpy(late[slot].id, id, ID_BYTES);
  count++;
  if (!events_change(fd, EPOLLIN | EPOLLET, FIRST_LATE + slot)) free_pipe(&late[slot]);
}

void late_on_readable(int index) { late[index].is_readable = 1; }

static void refill(void) {
  const uint64_t now = now_ms();
  allowance.bytes += (now - allowance.counted_at) * BYTES_PER_MS;
  if (allowance.bytes > BURST_BYTES) allowance.bytes = BURST_BYTES;
  allowance.counted_at = now;
}

// Sends the end of a stream. Returns 0 when the link has no room for it.
static int send_end(LatePipe *pipe) {
  // A LATE frame without bytes is the end of the stream: the pipe's last holder has gone.
  if (!pipe->is_quiet && !link_put(LATE, pipe->stream, 0, pipe->id, pipe->offset, 0, 0)) return 0;
  free_pipe(pipe);
  return 1;
}

int late_send(void) {
  static uint8_t piece[PIECE_BYTES];
  int wake = -1;
  if (!count) return wake;
  refill();
  for (int i = 0; i < MAX_LATE; i++) {
    LatePipe *pipe = &late[i];
    if (pipe->fd < 0 || !pipe->is_readable || !link_has_room()) continue;
    if (allowance.bytes < PIECE_BYTES) return PAUSE_MS;
    const ssize_t n = read(pipe->fd, piece, sizeof piece);
    if (n > 0) {
      link_put(LATE, pipe->stream, 0, pipe->id, pipe->offset, piece, n); // there is room: see link_has_room
      pipe->offset += n;
      pipe->is_quiet = 0;
      allowance.bytes -= n;
      wake = 0;
    } else if (n == 0) {
      if (!send_end(pipe)) return PAUSE_MS;
    } else {
      pipe->is_readable = 0; // EAGAIN
    }
  }
  return wake;
}
