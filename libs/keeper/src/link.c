#define _GNU_SOURCE
#include "link.h"
#include "clock.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SEND_BYTES = 512 << 10, RESERVE_BYTES = 96 << 10, READ_BYTES = 256 << 10 };
enum { REDIAL_MS = 20, REDIAL_LATER_MS = 100, REDIAL_PATIENCE_MS = 10000, CLAIM_WITHIN_MS = 2000 };

static const char *socket_path; // null over attach
static const uint8_t *sync_word;
static int in_fd = -1, out_fd = -1, epoll_fd, waiting_to_write;
static uint64_t in_tag, out_tag, fence, dialled_at, away_since;
static int claimed;
static Greeter *greet;
static Parser parser;
static uint8_t *pending;
static size_t pending_from, pending_to;

static void watch(int fd, uint32_t events, uint64_t tag, int operation) {
  struct epoll_event event = {.events = events, .data.u64 = tag};
  epoll_ctl(epoll_fd, operation, fd, &event);
}

void link_open(const char *path, const uint8_t *sync, int epoll, uint64_t tag_in, uint64_t tag_out, Greeter *greeter) {
  socket_path = path;
  sync_word = path ? 0 : sync;
  epoll_fd = epoll;
  in_tag = tag_in;
  out_tag = tag_out;
  greet = greeter;
  away_since = now_ms();
  const int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  parser = (Parser){.size = parser_size(), .sync = sync_word};
  parser.bytes = mmap(0, parser.size, protection, flags, -1, 0);
  pending = mmap(0, SEND_BYTES, protection, flags, -1, 0);
  if (path) return;
  in_fd = 0;
  out_fd = 1;
  for (int fd = 0; fd < 2; fd++) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  watch(in_fd, EPOLLIN, in_tag, EPOLL_CTL_ADD);
  watch(out_fd, 0, out_tag, EPOLL_CTL_ADD);
}

static int dial(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, socket_path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return 0;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
    close(fd);
    return 0;
  }
  in_fd = out_fd = fd;
  dialled_at = now_ms();
  watch(fd, EPOLLIN, in_tag, EPOLL_CTL_ADD);
  greet();
  link_flush();
  return in_fd >= 0;
}

int link_tick(void) {
  if (!socket_path) return -1;
  const uint64_t now = now_ms();
  if (in_fd >= 0 && !claimed && now - dialled_at >= CLAIM_WITHIN_MS) link_drop();
  if (in_fd >= 0) return claimed ? -1 : (int)(dialled_at + CLAIM_WITHIN_MS - now) + 1;
  if (dial()) return CLAIM_WITHIN_MS;
  return now - away_since < REDIAL_PATIENCE_MS ? REDIAL_MS : REDIAL_LATER_MS;
}

// Over attach there is nothing to close: what was queued is for a worker that is not there any more, and its successor will
// find the next sync word.
void link_drop(void) {
  parser_reset(&parser);
  pending_from = pending_to = 0;
  claimed = 0;
  if (!socket_path || in_fd < 0) return;
  close(in_fd);
  in_fd = out_fd = -1;
  waiting_to_write = 0;
  away_since = now_ms();
}

void link_malformed(void) {
  if (socket_path) link_drop();
}

void link_abandon(void) {
  if (socket_path && in_fd >= 0) close(in_fd);
  in_fd = out_fd = -1;
}

int link_is_up(void) { return claimed; }
uint64_t link_fence(void) { return fence; }
int link_is_flushed(void) { return pending_from == pending_to; }

static void accept_frame(const Header *header, const uint8_t *payload, FrameSink *sink) {
  if (header->type == CLAIM) {
    if (header->fence >= fence) {
      fence = header->fence;
      claimed = 1;
      if (!socket_path) pending_from = pending_to = 0; // for a worker that is gone
      sink(header, payload);
    } else {
      greet(); // tells the late comer the fence that it has lost to
    }
    return;
  }
  if (!claimed || header->fence != fence) return;
  sink(header, payload);
}

void link_read(FrameSink *sink) {
  for (;;) {
    size_t room;
    uint8_t *space = parser_space(&parser, &room);
    if (room > READ_BYTES) room = READ_BYTES;
    const ssize_t n = read(in_fd, space, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      if (!socket_path) { // attach: our stdin is closed for good; no worker can reach us again
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, in_fd, 0);
        claimed = 0;
      }
      link_drop();
      return;
    }
    parser.end += n;
    Header header;
    const uint8_t *payload;
    for (;;) {
      const enum Parsed parsed = parser_next(&parser, &header, &payload);
      if (parsed == FRAME) accept_frame(&header, payload, sink);
      if (in_fd < 0) return; // the sink may have dropped the connection
      if (parsed == MALFORMED) link_drop();
      if (parsed != FRAME) break;
    }
    if (in_fd < 0) return;
    if (parser.start == parser.end && parser.end > READ_BYTES) madvise(parser.bytes, parser.size, MADV_DONTNEED);
    if ((size_t)n < room) return;
  }
}

static void append(const void *bytes, size_t n) {
  if (n) memcpy(pending + pending_to, bytes, n);
  pending_to += n;
}

static size_t framed(size_t n) { return sizeof(Header) + n + (sync_word ? SYNC_BYTES + CRC_BYTES : 0); }

int link_put(uint8_t type, uint8_t stream, uint16_t flags, const uint8_t *id, uint64_t offset, const void *payload, size_t n) {
  if (out_fd < 0) return 0;
  if (pending_from == pending_to) pending_from = pending_to = 0;
  const size_t limit = type == OUTPUT || type == LATE || type == TERMINAL_OUTPUT ? SEND_BYTES - RESERVE_BYTES : SEND_BYTES;
  if (pending_to + framed(n) > limit) return 0;
  Header header = {.length = n, .type = type, .stream = stream, .flags = flags, .fence = fence, .offset = offset};
  if (id) memcpy(header.id, id, ID_BYTES);
  if (sync_word) append(sync_word, SYNC_BYTES);
  append(&header, sizeof header);
  append(payload, n);
  if (sync_word) {
    const uint32_t crc = crc32_of(crc32_of(0, &header, sizeof header), payload, n);
    append(&crc, sizeof crc);
  }
  return 1;
}

int link_has_room(void) { return out_fd >= 0 && pending_to - pending_from < SEND_BYTES / 4; }

void link_flush(void) {
  if (out_fd < 0) return;
  while (pending_from < pending_to) {
    const ssize_t n = write(out_fd, pending + pending_from, pending_to - pending_from);
    if (n > 0) {
      pending_from += n;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    link_drop();
    return;
  }
  const int blocked = pending_from < pending_to;
  if (blocked == waiting_to_write) return;
  waiting_to_write = blocked;
  if (socket_path) watch(out_fd, EPOLLIN | (blocked ? EPOLLOUT : 0), in_tag, EPOLL_CTL_MOD);
  else watch(out_fd, blocked ? EPOLLOUT : 0, out_tag, EPOLL_CTL_MOD);
}
