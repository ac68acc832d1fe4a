#define _GNU_SOURCE
#include "terminal.h"
#include "clock.h"
#include "events.h"
#include "link.h"
#include "processes.h"
#include "pty.h"
#include "reaper.h"
#include "ring_buffer.h"
#include "shell.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// The buffers are small, because their bytes are still printed after Ctrl-C.
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
  pid_t leader; // of the processes at this terminal: the shell, also after its end
  int is_followed, is_hung_up, end_sent;
  uint64_t frame_at, kill_at; // kill_at: 0 unless processes may be left to kill
  uint64_t reported;          // TERMINAL_OUTPUT was sent for this much typed input
  RingBuffer output, input;
  End end;
} Terminal;

static Terminal terminals[TERMINALS];

int terminals_open(void) {
  for (int i = 0; i < TERMINALS; i++) {
    if (!ring_buffer_open(&terminals[i].output, WINDOW_BYTES)) return 0;
    if (!ring_buffer_open(&terminals[i].input, WINDOW_BYTES)) return 0;
  }
  return 1;
}

static Terminal *find(const uint8_t *id) {
  for (int i = 0; i < TERMINALS; i++)
    if (terminals[i].is_taken && !memcmp(terminals[i].id, id, ID_BYTES)) return &terminals[i];
  return 0;
}

static void refuse(const uint8_t *id, enum TerminalEnd reason, const char *problem) {
  uint8_t payload[sizeof(End) + 256];
  const End end = {.code = NO_CODE, .reason = reason};
  const size_t n = strnlen(problem, sizeof payload - sizeof end);
  memcpy(payload, &end, sizeof end);
  memcpy(payload + sizeof end, problem, n);
  link_put(TERMINAL_ENDED, 0, 0, id, 0, payload, sizeof end + n);
}

static void hang_up(Terminal *terminal) {
  if (terminal->is_hung_up) return;
  terminal->is_hung_up = 1;
  terminal->kill_at = now_ms() + HANG_UP_MS;
  signal_session(terminal->leader, SIGHUP);
  signal_session(terminal->leader, SIGCONT);
}

static void open_terminal(Terminal *terminal, const uint8_t *id, const Opening *opening) {
  char problem[160];
  int fd;
  const pid_t pid = pty_spawn(opening, &fd, problem, sizeof problem);
  if (!pid) {
    refuse(id, NO_TERMINAL, problem);
    return;
  }
  ring_buffer_reset(&terminal->output);
  ring_buffer_reset(&terminal->input);
  *terminal = (Terminal){
    .is_taken = 1, .fd = fd, .shell = pid, .leader = pid, .output = terminal->output, .input = terminal->input};
  memcpy(terminal->id, id, ID_BYTES);
  processes_spare(pid);
  // Edge-triggered, like the output pipes: a full buffer or a program that does not read must not keep the loop busy.
  if (events_add(fd, EPOLLIN | EPOLLOUT | EPOLLET, FIRST_TERMINAL + (terminal - terminals))) return;
  hang_up(terminal);
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
  RingBuffer *output = &terminal->output;
  const uint64_t from = header->offset > output->received ? output->received : header->offset;
  output->sent = from < output->acked ? output->acked : from;
  terminal->is_followed = 1;
  terminal->end_sent = 0;
  terminal->reported = UINT64_MAX; // reported at once: this answers that the terminal is there
  terminal->frame_at = now_ms();
}

static void release(Terminal *terminal) {
  if (terminal->fd >= 0) close(terminal->fd);
  terminal->fd = -1;
  terminal->is_taken = 0;
  processes_unspare(terminal->leader);
  reaper_forget(terminal->shell);
}

// Returns whether the terminal has ended, so that only its end message is left to send.
static int is_over(const Terminal *terminal) { return !terminal->shell && terminal->fd < 0 && !terminal->kill_at; }

static void receive(Terminal *terminal) {
  while (terminal->fd >= 0) {
    size_t room;
    uint8_t *space = ring_buffer_space(&terminal->output, &room);
    if (!room) return;
    const ssize_t n = read(terminal->fd, space, room);
    if (n > 0) {
      terminal->output.received += n;
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && terminal->shell) return;
    // No process has the other side open, or only a process that outlived the shell. The close hangs that process up.
    close(terminal->fd);
    terminal->fd = -1;
  }
}

static void type_input(Terminal *terminal) {
  RingBuffer *input = &terminal->input;
  while (terminal->fd >= 0) {
    size_t n;
    const uint8_t *bytes = ring_buffer_unsent(input, &n);
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
  terminal->frame_at = now_ms();
  RingBuffer *input = &terminal->input;
  if (header->offset > input->received) return; // a gap: the worker sends again from the reported offset
  const uint64_t known = input->received - header->offset;
  for (uint64_t at = known; at < header->length;) {
    size_t room;
    uint8_t *space = ring_buffer_space(input, &room);
    if (!room) break;
    if (room > header->length - at) room = header->length - at;
    memcpy(space, payload + at, room);
    input->received += room;
    at += room;
  }
  if (terminal->fd < 0) input->sent = input->acked = input->received; // it has no reader
  type_input(terminal);
}

void terminal_resize(const Header *header, const uint8_t *payload) {
  Terminal *terminal = find(header->id);
  Cursor cursor = {.at = payload, .left = header->length};
  const uint32_t rows = take_u32(&cursor), columns = take_u32(&cursor);
  if (!terminal || cursor.bad) return;
  terminal->frame_at = now_ms();
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
  RingBuffer *buffer = &terminal->output;
  if (header->offset <= buffer->acked || header->offset > buffer->received) return;
  terminal->frame_at = now_ms();
  buffer->acked = header->offset;
  if (buffer->sent < header->offset) buffer->sent = header->offset;
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

void terminals_on_children(void) {
  for (int i = 0; i < TERMINALS; i++) {
    Terminal *terminal = &terminals[i];
    int status;
    if (!terminal->is_taken || !reaper_take(terminal->shell, &status)) continue;
    const int signalled = WIFSIGNALED(status);
    terminal->shell = 0;
    terminal->end =
      (End){.code = signalled ? NO_CODE : WEXITSTATUS(status), .signal = signalled ? WTERMSIG(status) : 0};
    terminal->end.reason = terminal->is_hung_up ? HUNG_UP : signalled ? SHELL_SIGNALLED : SHELL_EXITED;
    receive(terminal);
  }
}

static int tick(Terminal *terminal, uint64_t now) {
  if (is_over(terminal)) {
    if (now - terminal->frame_at >= FORGOTTEN_AFTER_MS) release(terminal);
    return FORGOTTEN_AFTER_MS;
  }
  if (now - terminal->frame_at >= FORGOTTEN_AFTER_MS) hang_up(terminal);
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

// Sends a piece of output. A piece also reports how much of the input has been typed, and may have no bytes.
static int send_piece(Terminal *terminal) {
  static uint8_t piece[sizeof(uint64_t) + PIECE_BYTES];
  size_t n;
  const uint8_t *bytes = ring_buffer_unsent(&terminal->output, &n);
  if (n > PIECE_BYTES) n = PIECE_BYTES;
  memcpy(piece, &terminal->input.sent, sizeof(uint64_t));
  memcpy(piece + sizeof(uint64_t), bytes, n);
  if (!link_put(TERMINAL_OUTPUT, 0, 0, terminal->id, terminal->output.sent, piece, sizeof(uint64_t) + n)) return 0;
  terminal->output.sent += n;
  terminal->reported = terminal->input.sent;
  return 1;
}

static int send(Terminal *terminal) {
  if (terminal->reported != terminal->input.sent && !send_piece(terminal)) return 0;
  while (terminal->output.sent < terminal->output.received)
    if (!send_piece(terminal)) return 0;
  if (!is_over(terminal) || terminal->end_sent) return 1;
  terminal->end_sent =
    link_put(TERMINAL_ENDED, 0, 0, terminal->id, terminal->output.sent, &terminal->end, sizeof terminal->end);
  return terminal->end_sent;
}

int terminals_send(void) {
  int more = 0;
  if (!link_is_up()) return 0;
  for (int i = 0; i < TERMINALS; i++)
    if (terminals[i].is_taken && terminals[i].is_followed && !send(&terminals[i])) more = 1;
  return more;
}
