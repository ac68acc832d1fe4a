#define _GNU_SOURCE
#include "terminal.h"
#include "clock.h"
#include "link.h"
#include "processes.h"
#include "pty.h"
#include "ring.h"
#include "shell.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

// Small rings: what is in them is printed after Ctrl-C.
enum { WINDOW_BYTES = 64 << 10, PIECE_BYTES = 16 << 10 };
enum { FORGOTTEN_AFTER_MS = 60000, HANG_UP_MS = 1000, SOON_MS = 20, NO_CODE = -1 };
enum { RESUME_ONLY = 1 };

enum TerminalEnd { SHELL_EXITED = 0, SHELL_SIGNALLED = 1, HUNG_UP = 2, NO_TERMINAL = 3, TOO_MANY = 4, UNKNOWN = 5 };

typedef struct {
  int32_t code;
  uint8_t reason, signal;
  uint16_t zero;
} End;
_Static_assert(sizeof(End) == 8, "the payload of TERMINAL_ENDED has no padding");

typedef struct {
  int is_taken;
  uint8_t id[ID_BYTES];
  int fd;        // the terminal's own side; -1 when nothing more comes from it
  pid_t shell;   // 0 when it has ended
  pid_t leader; // of the processes at this terminal: what the shell was
  int is_followed, is_hung_up, end_sent;
  uint64_t heard_at, kill_at; // kill_at: 0 unless something may be left to kill
  uint64_t told; // how much of the input the worker knows to be typed
  Ring output, input;
  End end;
} Terminal;

static Terminal terminals[TERMINALS];
static int epoll_fd;
static uint64_t first_tag;

void terminals_open(int epoll, uint64_t tag) {
  epoll_fd = epoll;
  first_tag = tag;
  for (int i = 0; i < TERMINALS; i++) {
    ring_open(&terminals[i].output, WINDOW_BYTES);
    ring_open(&terminals[i].input, WINDOW_BYTES);
  }
}

static Terminal *find(const uint8_t *id) {
  for (int i = 0; i < TERMINALS; i++)
    if (terminals[i].is_taken && !memcmp(terminals[i].id, id, ID_BYTES)) return &terminals[i];
  return 0;
}

static void refuse(const uint8_t *id, enum TerminalEnd reason, const char *words) {
  uint8_t payload[sizeof(End) + 256];
  const End end = {.code = NO_CODE, .reason = reason};
  const size_t n = strnlen(words, sizeof payload - sizeof end);
  memcpy(payload, &end, sizeof end);
  memcpy(payload + sizeof end, words, n);
  link_put(TERMINAL_ENDED, 0, 0, id, 0, payload, sizeof end + n);
}

static void open_terminal(Terminal *terminal, const uint8_t *id, const Opening *opening) {
  char words[160];
  int fd;
  const pid_t pid = pty_spawn(opening, &fd, words, sizeof words);
  if (!pid) {
    refuse(id, NO_TERMINAL, words);
    return;
  }
  ring_reset(&terminal->output);
  ring_reset(&terminal->input);
  *terminal = (Terminal){.is_taken = 1, .fd = fd, .shell = pid, .leader = pid, .output = terminal->output, .input = terminal->input};
  memcpy(terminal->id, id, ID_BYTES);
  // Edge-triggered, as the lanes: a full ring or a program that does not read must not keep the loop busy.
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = first_tag + (terminal - terminals)};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void terminal_start(const Header *header, const uint8_t *payload) {
  Cursor cursor = {.at = payload, .left = header->length};
  Opening opening;
  if (!opening_parse(&cursor, &opening)) {
    refuse(header->id, NO_TERMINAL, "the request was not valid");
    return;
  }
  Terminal *terminal = find(header->id);
  if (!terminal && header->flags & RESUME_ONLY) {
    refuse(header->id, UNKNOWN, "it is not in this sandbox");
    return;
  }
  if (!terminal && shell_problem()) {
    refuse(header->id, NO_TERMINAL, shell_problem());
    return;
  }
  for (int i = 0; i < TERMINALS && !terminal; i++) {
    if (terminals[i].is_taken) continue;
    open_terminal(&terminals[i], header->id, &opening);
    if (!terminals[i].is_taken) return;
    terminal = &terminals[i];
  }
  if (!terminal) {
    refuse(header->id, TOO_MANY, "the session has as many terminals as it may have");
    return;
  }
  Ring *output = &terminal->output;
  const uint64_t from = header->offset > output->received ? output->received : header->offset;
  output->sent = from < output->acked ? output->acked : from;
  terminal->is_followed = 1;
  terminal->end_sent = 0;
  terminal->told = UINT64_MAX; // it is told at once, which says that the terminal is there
  terminal->heard_at = now_ms();
}

static void hang_up(Terminal *terminal) {
  if (terminal->is_hung_up) return;
  terminal->is_hung_up = 1;
  terminal->kill_at = now_ms() + HANG_UP_MS;
  signal_session(terminal->leader, SIGHUP);
  signal_session(terminal->leader, SIGCONT);
}

static void release(Terminal *terminal) {
  if (terminal->fd >= 0) close(terminal->fd);
  terminal->fd = -1;
  terminal->is_taken = 0;
}

// Nothing of it is left but its end.
static int is_over(const Terminal *terminal) { return !terminal->shell && terminal->fd < 0 && !terminal->kill_at; }

static void receive(Terminal *terminal) {
  while (terminal->fd >= 0) {
    size_t room;
    uint8_t *space = ring_space(&terminal->output, &room);
    if (!room) return;
    const ssize_t n = read(terminal->fd, space, room);
    if (n > 0) {
      terminal->output.received += n;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && terminal->shell) return;
    // Nobody has the other side open any more, or only what outlived the shell: closing hangs it up.
    close(terminal->fd);
    terminal->fd = -1;
  }
}

static void type_input(Terminal *terminal) {
  Ring *input = &terminal->input;
  while (terminal->fd >= 0) {
    size_t n;
    const uint8_t *bytes = ring_unsent(input, &n);
    if (!n) return;
    const ssize_t written = write(terminal->fd, bytes, n);
    if (written <= 0) return;
    input->sent += written;
    input->acked = input->sent;
  }
}

void terminal_input(const Header *header, const uint8_t *payload) {
  Terminal *terminal = find(header->id);
  if (!terminal) return;
  terminal->heard_at = now_ms();
  Ring *input = &terminal->input;
  if (header->offset > input->received) return; // with a gap: its sender begins again at what it was told
  const uint64_t known = input->received - header->offset;
  for (uint64_t at = known; at < header->length;) {
    size_t room;
    uint8_t *space = ring_space(input, &room);
    if (!room) break;
    if (room > header->length - at) room = header->length - at;
    memcpy(space, payload + at, room);
    input->received += room;
    at += room;
  }
  if (terminal->fd < 0) input->sent = input->acked = input->received; // nobody reads it
  type_input(terminal);
}

void terminal_resize(const Header *header, const uint8_t *payload) {
  Terminal *terminal = find(header->id);
  Cursor cursor = {.at = payload, .left = header->length};
  const uint32_t rows = take_u32(&cursor), columns = take_u32(&cursor);
  if (!terminal || cursor.bad) return;
  terminal->heard_at = now_ms();
  if (terminal->fd >= 0) pty_set_size(terminal->fd, rows, columns);
}

void terminal_close(const Header *header) {
  Terminal *terminal = find(header->id);
  if (!terminal) return;
  if (is_over(terminal)) release(terminal);
  else hang_up(terminal);
}

void terminal_ack(const Header *header) {
  Terminal *terminal = find(header->id);
  if (!terminal) return;
  Ring *ring = &terminal->output;
  if (header->offset <= ring->acked || header->offset > ring->received) return;
  terminal->heard_at = now_ms();
  ring->acked = header->offset;
  if (ring->sent < header->offset) ring->sent = header->offset;
  receive(terminal);
}

void terminals_claimed(void) {
  for (int i = 0; i < TERMINALS; i++) terminals[i].is_followed = 0;
}

void terminals_hang_up(void) {
  for (int i = 0; i < TERMINALS; i++)
    if (terminals[i].is_taken && terminals[i].shell) hang_up(&terminals[i]);
}

void terminal_on_ready(int index) {
  Terminal *terminal = &terminals[index];
  if (!terminal->is_taken) return;
  type_input(terminal);
  receive(terminal);
}

int terminal_on_child(pid_t pid, int status) {
  for (int i = 0; i < TERMINALS; i++) {
    Terminal *terminal = &terminals[i];
    if (!terminal->is_taken || terminal->shell != pid) continue;
    terminal->shell = 0;
    terminal->end = (End){.code = WIFSIGNALED(status) ? NO_CODE : WEXITSTATUS(status)};
    terminal->end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    terminal->end.reason = terminal->is_hung_up ? HUNG_UP : WIFSIGNALED(status) ? SHELL_SIGNALLED : SHELL_EXITED;
    receive(terminal);
    return 1;
  }
  return 0;
}

pid_t terminal_leader(int index) { return terminals[index].is_taken ? terminals[index].leader : 0; }

static int tick(Terminal *terminal, uint64_t now) {
  if (is_over(terminal)) {
    if (now - terminal->heard_at >= FORGOTTEN_AFTER_MS) release(terminal);
    return FORGOTTEN_AFTER_MS;
  }
  if (now - terminal->heard_at >= FORGOTTEN_AFTER_MS) hang_up(terminal);
  if (terminal->kill_at) {
    const int left = signal_session(terminal->leader, now < terminal->kill_at ? 0 : SIGKILL);
    if (!left && !terminal->shell) terminal->kill_at = 0;
    return left || terminal->shell ? SOON_MS : 0;
  }
  return terminal->input.received > terminal->input.sent ? SOON_MS : FORGOTTEN_AFTER_MS / 4;
}

int terminals_tick(void) {
  int wake = -1;
  const uint64_t now = now_ms();
  for (int i = 0; i < TERMINALS; i++) {
    if (!terminals[i].is_taken) continue;
    type_input(&terminals[i]);
    const int next = tick(&terminals[i], now);
    if (wake < 0 || next < wake) wake = next;
  }
  return wake;
}

// Every piece says how much of the input has been typed; one without bytes says only that.
static int send_piece(Terminal *terminal) {
  static uint8_t piece[sizeof(uint64_t) + PIECE_BYTES];
  size_t n;
  const uint8_t *bytes = ring_unsent(&terminal->output, &n);
  if (n > PIECE_BYTES) n = PIECE_BYTES;
  memcpy(piece, &terminal->input.sent, sizeof(uint64_t));
  memcpy(piece + sizeof(uint64_t), bytes, n);
  if (!link_put(TERMINAL_OUTPUT, 0, 0, terminal->id, terminal->output.sent, piece, sizeof(uint64_t) + n)) return 0;
  terminal->output.sent += n;
  terminal->told = terminal->input.sent;
  return 1;
}

static int send(Terminal *terminal) {
  if (terminal->told != terminal->input.sent && !send_piece(terminal)) return 0;
  while (terminal->output.sent < terminal->output.received)
    if (!send_piece(terminal)) return 0;
  if (!is_over(terminal) || terminal->end_sent) return 1;
  terminal->end_sent = link_put(TERMINAL_ENDED, 0, 0, terminal->id, terminal->output.sent, &terminal->end, sizeof terminal->end);
  return terminal->end_sent;
}

int terminals_send(void) {
  int more = 0;
  if (!link_is_up()) return 0;
  for (int i = 0; i < TERMINALS; i++)
    if (terminals[i].is_taken && terminals[i].is_followed && !send(&terminals[i])) more = 1;
  return more;
}
