#define _GNU_SOURCE
#include "output.h"
#include "events.h"
#include "run_directory.h"
#include "free_path.h"
#include "late.h"
#include "link.h"
#include "log.h"
#include "ring_buffer.h"
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 4 << 20, GROW_AFTER = 1 << 20, GROWN_PIPE = 1 << 20, PLAIN_PIPE = 64 << 10 };
static const uint64_t UNTIL_REPORT = UINT64_MAX;

typedef struct {
  char path[160];
  int fd; // -1: it could not be made
  ino_t inode;
  int is_grown, is_released; // is_released: no process held the pipe when its entry ended
  RingBuffer buffer;
  uint64_t left; // bytes that the pipe still has for this entry
} OutputPipe;

static OutputPipe pipes[STREAMS];
static uint8_t entry_id[ID_BYTES];
static int is_with_shell; // the shell has kept the pipes at the end of the last entry

static int make(int stream) {
  OutputPipe *pipe = &pipes[stream];
  free_path(pipe->path);
  if (mkfifo(pipe->path, 0600)) log_failure("mkfifo");
  pipe->fd = open(pipe->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (pipe->fd < 0) {
    log_failure("opening an output pipe");
    return 0;
  }
  // A FIFO reports a hang-up only after its first writer. After this open, the FIFO reports one whenever no process
  // holds it.
  const int writer = open(pipe->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (writer >= 0) close(writer);
  struct stat status;
  pipe->inode = fstat(pipe->fd, &status) ? 0 : status.st_ino; // no FIFO has the inode 0: the next entry makes it again
  pipe->is_grown = 0;
  // Edge-triggered: a FIFO without writers reports a hang-up for ever, which must not keep the loop busy.
  if (events_add(pipe->fd, EPOLLIN | EPOLLET, FIRST_OUTPUT + stream)) return 1;
  close(pipe->fd);
  pipe->fd = -1;
  return 0;
}

int output_open(void) {
  for (int s = 0; s < STREAMS; s++) {
    snprintf(pipes[s].path, sizeof pipes[s].path, "%s", path_of(s ? "stderr" : "stdout"));
    if (!ring_buffer_open(&pipes[s].buffer, BUFFER_BYTES) || !make(s)) return 0;
  }
  return 1;
}

// Finds out, with one call, which of the pipes a process holds and which have bytes in them.
static void look_at_pipes(short *revents) {
  struct pollfd p[STREAMS];
  for (int s = 0; s < STREAMS; s++) p[s] = (struct pollfd){.fd = pipes[s].fd, .events = POLLIN};
  poll(p, STREAMS, 0); // does not wait, so it cannot be interrupted; without memory they count as held
  for (int s = 0; s < STREAMS; s++) revents[s] = p[s].revents;
}

static int is_held_or_full(short revents) { return !(revents & POLLHUP) || (revents & POLLIN); }

static int become_late(int stream) {
  late_add(pipes[stream].fd, stream, entry_id, pipes[stream].buffer.received, is_with_shell);
  return make(stream);
}

static void set_size(OutputPipe *pipe, int bytes, int is_grown) {
  fcntl(pipe->fd, F_SETPIPE_SZ, bytes); // refused beyond the user's budget: then it keeps its size
  pipe->is_grown = is_grown;
}

static int reuse(int stream) {
  OutputPipe *pipe = &pipes[stream];
  if (!pipe->inode || !(run_directory_is_unchanged() || run_directory_has_fifo(pipe->path, pipe->inode))) {
    close(pipe->fd);
    return make(stream);
  }
  if (pipe->is_grown) set_size(pipe, PLAIN_PIPE, 0);
  return 1;
}

int output_begin(const uint8_t *id, enum Holder holder) {
  short revents[STREAMS];
  if (holder == SHELL_ALONE) revents[0] = revents[1] = POLLHUP;
  else look_at_pipes(revents);
  for (int s = 0; s < STREAMS; s++) {
    const int has_pipe = pipes[s].fd < 0 ? make(s) : is_held_or_full(revents[s]) ? become_late(s) : reuse(s);
    if (!has_pipe) return 0;
    ring_buffer_reset(&pipes[s].buffer);
    pipes[s].left = UNTIL_REPORT;
  }
  memcpy(entry_id, id, ID_BYTES);
  return 1;
}

static void receive(OutputPipe *pipe) {
  for (;;) {
    size_t room;
    uint8_t *space = ring_buffer_space(&pipe->buffer, &room);
    if (room > pipe->left) room = pipe->left;
    if (!room) return;
    const ssize_t n = read(pipe->fd, space, room);
    if (n <= 0) { // EAGAIN, or no writer
      if (pipe->left != UNTIL_REPORT) pipe->left = 0; // another process has read the bytes that were announced
      return;
    }
    pipe->buffer.received += n;
    if (pipe->left != UNTIL_REPORT) pipe->left -= n;
    // A larger pipe is faster, but a user's pipes share one budget on the host, so only pipes that stream are enlarged.
    if (!pipe->is_grown && pipe->buffer.received > GROW_AFTER) set_size(pipe, GROWN_PIPE, 1);
    if ((size_t)n < room && pipe->left == UNTIL_REPORT) return;
  }
}

void output_on_readable(int stream) { receive(&pipes[stream]); }

// Reads what the pipes still have. All of it was written before the shell's report, and nothing follows.
static void end_of_kept_pipes(void) {
  for (int s = 0; s < STREAMS; s++) {
    OutputPipe *pipe = &pipes[s];
    int n = 0;
    receive(pipe);
    if (ring_buffer_is_full(&pipe->buffer)) ioctl(pipe->fd, FIONREAD, &n);
    pipe->left = n;
    pipe->is_released = 1;
  }
}

void output_end(enum Holder holder) {
  short revents[STREAMS];
  is_with_shell = holder != UNKNOWN_HOLDER;
  if (holder == SHELL_ALONE) {
    end_of_kept_pipes();
    return;
  }
  look_at_pipes(revents);
  for (int s = 0; s < STREAMS; s++) {
    OutputPipe *pipe = &pipes[s];
    int n = 0;
    if (revents[s] & POLLIN) ioctl(pipe->fd, FIONREAD, &n); // of a pipe it cannot fail
    pipe->left = n;
    pipe->is_released = revents[s] & POLLHUP; // no process can add to these bytes
    receive(pipe);
  }
}

int output_settle(void) {
  short revents[STREAMS];
  for (int s = 0; s < STREAMS; s++)
    if (pipes[s].left) return 0;
  if (pipes[0].is_released && pipes[1].is_released) return 1;
  look_at_pipes(revents);
  for (int s = 0; s < STREAMS; s++)
    if (pipes[s].fd >= 0 && is_held_or_full(revents[s])) become_late(s);
  return 1;
}

int output_is_full(void) { return ring_buffer_is_full(&pipes[0].buffer) || ring_buffer_is_full(&pipes[1].buffer); }
uint64_t output_received(int stream) { return pipes[stream].buffer.received; }
uint64_t output_acked(int stream) { return pipes[stream].buffer.acked; }

void output_ack(int stream, uint64_t offset) {
  RingBuffer *buffer = &pipes[stream].buffer;
  if (offset <= buffer->acked || offset > buffer->received) return;
  buffer->acked = offset;
  if (buffer->sent < offset) buffer->sent = offset;
  receive(&pipes[stream]);
}

void output_resume(int stream, uint64_t offset) {
  RingBuffer *buffer = &pipes[stream].buffer;
  if (offset < buffer->acked) offset = buffer->acked;
  if (offset > buffer->received) offset = buffer->received;
  buffer->sent = offset;
}

int output_send(void) {
  for (int s = 0; s < STREAMS; s++) {
    RingBuffer *buffer = &pipes[s].buffer;
    for (;;) {
      size_t n;
      const uint8_t *bytes = ring_buffer_unsent(buffer, &n);
      if (!n) break;
      if (n > MAX_OUTBOUND_PAYLOAD) n = MAX_OUTBOUND_PAYLOAD;
      if (!link_put(OUTPUT, s, 0, entry_id, buffer->sent, bytes, n)) return 0;
      buffer->sent += n;
    }
  }
  return 1;
}
