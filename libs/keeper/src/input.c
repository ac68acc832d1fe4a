#define _GNU_SOURCE
#include "input.h"
#include "folder.h"
#include "link.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_BYTES = 64 << 10, GROW_AFTER = 1 << 20, GROWN_PIPE = 1 << 20, QUICK_TICKS = 50, SLOW_TICK_MS = 10 };

static int epoll_fd, fd = -1; // the writing end; the shell opens the other by its name
static uint64_t fd_tag;
static uint8_t entry_id[ID_BYTES];
static uint8_t *bytes; // of a window, as a ring
static uint64_t received, given, told;
static int is_fed, is_opened, has_ended, is_deaf, told_deaf, grown, ticks;

void input_open(int epoll, uint64_t tag) {
  epoll_fd = epoll;
  fd_tag = tag;
  bytes = mmap(0, INPUT_WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void close_pipe(void) {
  if (fd < 0) return;
  close(fd);
  fd = -1;
}

// Nobody but us holds a writing end, so that closing it is the end for whoever reads. A reading end we need only to open the
// writing one without waiting: without it the pipe tells whether the shell has opened its own.
int input_begin(const uint8_t *id) {
  input_end();
  unlink(path_of("input"));
  if (mkfifo(path_of("input"), 0600)) return 0;
  const int reader = open(path_of("input"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  fd = open(path_of("input"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (reader >= 0) close(reader);
  if (fd < 0) return 0;
  struct epoll_event event = {.events = EPOLLOUT | EPOLLET, .data.u64 = fd_tag};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
  memcpy(entry_id, id, ID_BYTES);
  received = given = told = 0;
  is_opened = has_ended = is_deaf = told_deaf = grown = ticks = 0;
  is_fed = 1;
  return 1;
}

void input_end(void) {
  if (!is_fed) return;
  is_fed = 0;
  close_pipe();
  unlink(path_of("input"));
  if (received > KEPT_BYTES) madvise(bytes + KEPT_BYTES, INPUT_WINDOW - KEPT_BYTES, MADV_DONTNEED);
}

static size_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

// The reader has closed its end for good: what is left, and what still comes, is nobody's.
static void turn_deaf(void) {
  is_deaf = 1;
  given = received;
  close_pipe();
}

static void give(void) {
  if (!is_opened) return;
  while (fd >= 0 && given < received) {
    const size_t at = given % INPUT_WINDOW;
    const ssize_t n = write(fd, bytes + at, smaller(INPUT_WINDOW - at, received - given));
    if (n > 0) given += n;
    else if (n < 0 && errno == EINTR) continue;
    else if (n < 0 && errno == EAGAIN) break;
    else turn_deaf();
  }
  // A larger pipe is faster, but pipes of a user share one budget on the host: only those that stream get one.
  if (!grown && given > GROW_AFTER && fd >= 0) {
    fcntl(fd, F_SETPIPE_SZ, GROWN_PIPE);
    grown = 1;
  }
  if (has_ended && given == received) close_pipe();
}

static void receive(const uint8_t *from, size_t n) {
  while (n) {
    const size_t at = received % INPUT_WINDOW;
    const size_t room = smaller(INPUT_WINDOW - at, INPUT_WINDOW - (received - given));
    const size_t piece = n < room ? n : room;
    if (!piece) return;
    memcpy(bytes + at, from, piece);
    received += piece;
    from += piece;
    n -= piece;
    give(); // so that one frame of a whole window fits behind what the pipe takes at once
  }
}

void input_on_frame(const Header *header, const uint8_t *payload) {
  if (!is_fed || memcmp(header->id, entry_id, ID_BYTES)) return;
  const uint64_t end = header->offset + header->length;
  if (header->offset > received || end < header->offset) return;
  if (is_deaf) {
    if (end > received) given = received = end;
    return;
  }
  if (end > received && !has_ended) receive(payload + (received - header->offset), end - received);
  if (header->flags & 1 && end == received) has_ended = 1;
  give();
}

void input_on_writable(void) {
  if (is_fed) give();
}

// There is no event for it: before the shell opens the pipe, writing fails as it does when nobody reads any more.
int input_tick(void) {
  if (!is_fed || is_opened || fd < 0) return -1;
  struct pollfd p = {.fd = fd, .events = POLLOUT};
  if (poll(&p, 1, 0) > 0 && p.revents & POLLERR) return ticks++ < QUICK_TICKS ? 1 : SLOW_TICK_MS;
  is_opened = 1;
  give();
  return -1;
}

void input_resume(void) {
  told = UINT64_MAX;
  told_deaf = 0;
}

int input_send(void) {
  if (!is_fed || (told == given && told_deaf == is_deaf)) return 1;
  if (!link_put(INPUT_TAKEN, 0, is_deaf, entry_id, given, 0, 0)) return 0;
  told = given;
  told_deaf = is_deaf;
  return 1;
}
