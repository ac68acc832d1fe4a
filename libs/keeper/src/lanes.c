#define _GNU_SOURCE
#include "lanes.h"
#include "clock.h"
#include "folder.h"
#include "link.h"
#include "ring.h"
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RING_BYTES = 4 << 20 };
enum { LATE_PIECE = 32 << 10, LATE_BURST = 1 << 20, LATE_PER_MS = 1 << 10, LATE_PAUSE_MS = 50, GROW_AFTER = 1 << 20, GROWN_PIPE = 1 << 20, PLAIN_PIPE = 64 << 10 };
static const uint64_t UNTIL_REPORT = UINT64_MAX;

typedef struct {
  char path[160];
  int fd;
  ino_t inode;
  int grown;
  Ring ring;
  uint64_t left; // still to come from the pipe for this entry
} Lane;

typedef struct {
  int fd; // -1: free
  int stream, readable;
  uint8_t id[ID_BYTES];
  uint64_t offset;
} Late;

static Lane lanes[LANES];
static Late late[MAX_LATE];
static uint8_t entry_id[ID_BYTES];
static uint64_t late_sent; // since the allowance was last counted
static int epoll_fd;
static uint64_t first_lane_tag, first_late_tag;

static void watch(int fd, uint64_t tag, int operation) {
  // Edge-triggered: a FIFO without writers reports a hang-up for ever, which must not keep the loop busy.
  struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = tag};
  epoll_ctl(epoll_fd, operation, fd, &event);
}

static void make(int stream) {
  Lane *lane = &lanes[stream];
  unlink(lane->path);
  mkfifo(lane->path, 0600);
  lane->fd = open(lane->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  // A FIFO reports a hang-up only once it has had a writer; from here on it always does when nobody holds it.
  const int writer = open(lane->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (writer >= 0) close(writer);
  struct stat status;
  lane->inode = fstat(lane->fd, &status) ? 0 : status.st_ino;
  lane->grown = 0;
  watch(lane->fd, first_lane_tag + stream, EPOLL_CTL_ADD);
}

void lanes_open(int epoll, uint64_t lane_tag, uint64_t late_tag) {
  epoll_fd = epoll;
  first_lane_tag = lane_tag;
  first_late_tag = late_tag;
  for (int i = 0; i < MAX_LATE; i++) late[i].fd = -1;
  for (int s = 0; s < LANES; s++) {
    snprintf(lanes[s].path, sizeof lanes[s].path, "%s", path_of(s ? "stderr" : "stdout"));
    ring_open(&lanes[s].ring, RING_BYTES);
    make(s);
  }
}

int lane_open_for_writing(int stream) { return open(lanes[stream].path, O_WRONLY | O_NONBLOCK | O_CLOEXEC); }

static int is_held_or_full(const Lane *lane) {
  struct pollfd p = {.fd = lane->fd, .events = POLLIN};
  poll(&p, 1, 0);
  return !(p.revents & POLLHUP) || (p.revents & POLLIN);
}

// Every holder is at least one process, so more lanes than this are out of reach of an ordinary pids limit. Beyond it the
// oldest is closed.
static void become_late(int stream) {
  Lane *lane = &lanes[stream];
  int slot = 0;
  while (slot < MAX_LATE && late[slot].fd >= 0) slot++;
  if (slot == MAX_LATE) {
    slot = 0;
    close(late[0].fd);
  }
  late[slot] = (Late){.fd = lane->fd, .stream = stream, .readable = 1, .offset = lane->ring.received};
  memcpy(late[slot].id, entry_id, ID_BYTES);
  watch(lane->fd, first_late_tag + slot, EPOLL_CTL_MOD);
  make(stream);
}

static void reuse(int stream) {
  Lane *lane = &lanes[stream];
  struct stat status;
  if (stat(lane->path, &status) || status.st_ino != lane->inode) { // somebody removed it
    close(lane->fd);
    make(stream);
  } else if (lane->grown) {
    fcntl(lane->fd, F_SETPIPE_SZ, PLAIN_PIPE);
    lane->grown = 0;
  }
}

void lanes_begin(const uint8_t *id) {
  for (int s = 0; s < LANES; s++) {
    if (is_held_or_full(&lanes[s])) become_late(s);
    else reuse(s);
    ring_reset(&lanes[s].ring);
    lanes[s].left = UNTIL_REPORT;
  }
  memcpy(entry_id, id, ID_BYTES);
}

static void receive(Lane *lane) {
  for (;;) {
    size_t room;
    uint8_t *space = ring_space(&lane->ring, &room);
    if (room > lane->left) room = lane->left;
    if (!room) return;
    const ssize_t n = read(lane->fd, space, room);
    if (n <= 0) {
      if (lane->left != UNTIL_REPORT) lane->left = 0; // somebody else has read what was announced
      return;
    }
    lane->ring.received += n;
    if (lane->left != UNTIL_REPORT) lane->left -= n;
    // A larger pipe is faster, but pipes of a user share one budget on the host: only those that stream get one.
    if (!lane->grown && lane->ring.received > GROW_AFTER) {
      fcntl(lane->fd, F_SETPIPE_SZ, GROWN_PIPE);
      lane->grown = 1;
    }
    if ((size_t)n < room && lane->left == UNTIL_REPORT) return;
  }
}

void lane_on_readable(int stream) { receive(&lanes[stream]); }

void late_on_readable(int index) { late[index].readable = 1; }

void lanes_end(void) {
  for (int s = 0; s < LANES; s++) {
    int n = 0;
    ioctl(lanes[s].fd, FIONREAD, &n);
    lanes[s].left = n;
    receive(&lanes[s]);
  }
}

int lanes_settle(void) {
  for (int s = 0; s < LANES; s++)
    if (lanes[s].left) return 0;
  for (int s = 0; s < LANES; s++)
    if (is_held_or_full(&lanes[s])) become_late(s);
  return 1;
}

int lanes_are_full(void) { return ring_is_full(&lanes[0].ring) || ring_is_full(&lanes[1].ring); }
uint64_t lane_received(int stream) { return lanes[stream].ring.received; }
uint64_t lane_acked(int stream) { return lanes[stream].ring.acked; }

void lane_ack(int stream, uint64_t offset) {
  Ring *ring = &lanes[stream].ring;
  if (offset <= ring->acked || offset > ring->received) return;
  ring->acked = offset;
  if (ring->sent < offset) ring->sent = offset;
  receive(&lanes[stream]);
}

void lane_resume(int stream, uint64_t offset) {
  Ring *ring = &lanes[stream].ring;
  if (offset < ring->acked) offset = ring->acked;
  if (offset > ring->received) offset = ring->received;
  ring->sent = offset;
}

int lanes_send(void) {
  for (int s = 0; s < LANES; s++) {
    Ring *ring = &lanes[s].ring;
    for (;;) {
      size_t n;
      const uint8_t *bytes = ring_unsent(ring, &n);
      if (!n) break;
      if (n > MAX_OUTBOUND_PAYLOAD) n = MAX_OUTBOUND_PAYLOAD;
      if (!link_put(OUTPUT, s, 0, entry_id, ring->sent, bytes, n)) return 0;
      ring->sent += n;
    }
  }
  return 1;
}

static uint64_t late_allowance(void) {
  static uint64_t allowance = LATE_BURST, counted_at;
  const uint64_t now = now_ms();
  allowance += (now - counted_at) * LATE_PER_MS;
  if (allowance > LATE_BURST) allowance = LATE_BURST;
  allowance -= late_sent;
  late_sent = 0;
  counted_at = now;
  return allowance;
}

int late_send(void) {
  static uint8_t piece[LATE_PIECE];
  const uint64_t allowance = late_allowance();
  int wake = -1;
  for (int i = 0; i < MAX_LATE; i++) {
    Late *lane = &late[i];
    if (lane->fd < 0 || !lane->readable || !link_has_room()) continue;
    if (late_sent + LATE_PIECE > allowance) return LATE_PAUSE_MS;
    const ssize_t n = read(lane->fd, piece, sizeof piece);
    if (n > 0) {
      link_put(LATE, lane->stream, 0, lane->id, lane->offset, piece, n);
      lane->offset += n;
      late_sent += n;
      wake = 0;
    } else if (n == 0) {
      // Empty: its last holder is gone, nothing more comes of this stream of this entry.
      if (!link_put(LATE, lane->stream, 0, lane->id, lane->offset, piece, 0)) return LATE_PAUSE_MS;
      close(lane->fd);
      lane->fd = -1;
    } else {
      lane->readable = 0;
    }
  }
  return wake;
}
