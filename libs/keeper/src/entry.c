#define _GNU_SOURCE
#include "entry.h"
#include "begun.h"
#include "cgroup.h"
#include "clock.h"
#include "clocks.h"
#include "files.h"
#include "folder.h"
#include "identity.h"
#include "input.h"
#include "ladder.h"
#include "lanes.h"
#include "link.h"
#include "processes.h"
#include "reaper.h"
#include "shell.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM_WITHIN_MS = 100, CROWD = 8, LOOK_MS = 50, ALONE = 2 /* keeper and shell */, CHECK_WITHIN_MS = 2000, CLOSE_FLUSH_MS = 500, TICK_MS = 10, NO_CODE = -1 };

enum Phase {
  NOTHING, // none has begun
  WAITING, // for the shell to be ready
  CHECKING, // a child parses the script
  RUNNING,
  DRAINING, // over, but the rest of its output waits for room
  ENDED,
};

static enum Phase phase;
static enum EntryKind kind;
static uint8_t id[ID_BYTES];
static uint32_t grace_ms;
static pid_t helper; // does the file operation, or the check
static Moment since;
static uint64_t began_at, oom_kills_before;
static Turn turn;
static enum Check checks, check; // that are still to be made before the script runs; the one that is
static uint64_t forks_refused; // by the limit, until now
static int has_company; // processes of earlier commands, when it began
static int has_report, resumed, end_sent, closing;
static enum { STAYS, ASKED_TO_LEAVE, SHELL_GONE } leaving;
static uint64_t close_at;
static Report report;

// Of the span since the end of the entry before; the worst thing that happened is told with the next end.
static enum ShellState span_state;
static const char *span_reason;

static struct {
  int32_t code;
  uint8_t reason, state, signal, file_errno;
  uint32_t generation, run_ms;
  uint64_t totals[LANES];
} end;
_Static_assert(sizeof end == 32, "the payload of END has no padding");
static const char *end_reason;

static int is_busy(void) { return phase > NOTHING && phase < ENDED; }

Moment entry_since(void) { return phase == RUNNING ? since : moment_now(); }

static void note(enum ShellState state, const char *reason) {
  if (state <= span_state) return;
  span_state = state;
  span_reason = reason;
}

static void refuse(const uint8_t *of, enum Refusal why) { link_put(REFUSED, 0, why, of, 0, 0, 0); }

// The keeper's own words, where a shell would have printed some.
static void print_error(const char *words) {
  const int fd = lane_open_for_writing(1);
  if (fd < 0) return;
  if (write(fd, words, strlen(words)) < 0) words = "";
  close(fd);
}

// Over, one way or the other. What is in the pipes at this moment is the last of its output.
static void conclude(int code, enum EndReason reason, int signal) {
  if (ladder_is_up()) {
    reason = ladder_reason();
    signal = 0; // it was ours
  } else if (signal) {
    reason = SIGNALLED;
  }
  const int died = signal || code == 128 + SIGKILL;
  if (died && reason <= SIGNALLED && cgroup_oom_kills() > oom_kills_before) reason = OUT_OF_MEMORY;
  ladder_end();
  forks_refused = cgroup_pids_refused();
  input_end();
  lanes_end();
  helper = 0;
  end.code = code;
  end.reason = reason;
  end.signal = signal;
  end.state = span_state;
  end_reason = span_reason;
  end.generation = shell_generation();
  end.run_ms = began_at ? now_ms() - began_at : 0;
  span_state = KEPT;
  span_reason = 0;
  phase = DRAINING;
}

// What was killed takes its place until it is gone, and a shell that may not fork does not try again.
static void wait_for_room(void) {
  for (int ms = 0; ms < ROOM_WITHIN_MS; ms++) {
    reap_children();
    if (cgroup_pids_current() <= cgroup_pids_max() / CROWD) return;
    usleep(1000);
  }
}

static void sweep_for_room(void) {
  sweep_kill(BEGINNING, shell_pid());
  wait_for_room();
  note(PARTIAL, "background processes were ended at the limit of processes");
}

// A background fork bomb is at the limit now and well below it the next moment. What tells it is that forks were refused while no
// command ran, or while much of the room is taken by what the running one has not started.
static int is_short_of_processes(void) {
  const uint64_t before = forks_refused;
  const long now = cgroup_pids_current();
  has_company = now > ALONE;
  if (!has_company) return 0;
  forks_refused = cgroup_pids_refused();
  return forks_refused != before || cgroup_is_full_with(now);
}

static void look_for_a_bomb(void) {
  const uint64_t refused = cgroup_pids_refused();
  if (refused == forks_refused) return;
  forks_refused = refused;
  if (processes_bystanders(since, shell_pid()) < cgroup_pids_max() / CROWD) return; // its own doing
  sweep_kill_bystanders(since, shell_pid());
  wait_for_room();
  note(PARTIAL, "background processes were ended at the limit of processes");
}

static void run_file(const FileEntry *file) {
  const int out = lane_open_for_writing(0), error = lane_open_for_writing(1);
  began_at = now_ms();
  helper = file_spawn(file, out, error);
  if (helper < 0) {
    sweep_for_room();
    helper = file_spawn(file, out, error);
  }
  close(out);
  close(error);
  phase = RUNNING;
  if (helper < 0) conclude(NO_CODE, EXITED, 0);
}

static void run_command(void) {
  since = moment_now();
  began_at = now_ms();
  clocks_start();
  phase = RUNNING;
  shell_run(&turn);
}

static pid_t start_check(void) {
  const int error = lane_open_for_writing(1);
  const pid_t child = shell_check(check, error);
  close(error);
  return child;
}

// The next check, or the script itself.
static void check_or_run(void) {
  if (!checks) {
    run_command();
    return;
  }
  check = checks & CHECK_PARSES ? CHECK_PARSES : CHECK_END;
  checks &= ~check;
  phase = CHECKING;
  helper = start_check();
  if (helper >= 0) return;
  sweep_for_room();
  helper = start_check();
  if (helper < 0) conclude(NO_CODE, EXITED, 0);
}

static void proceed(void) {
  if (phase != WAITING) return;
  if (shell_problem()) {
    note(LOST, shell_problem());
    conclude(127, EXITED, 0);
    return;
  }
  if (!shell_is_ready()) return;
  if (kind == RESTART_ENTRY) {
    since = BEGINNING;
    began_at = now_ms();
    clocks_start();
    phase = RUNNING;
    shell_leave();
    return;
  }
  check_or_run();
}

static enum Refusal why_not(const uint8_t *of) {
  const int same = phase != NOTHING && !memcmp(of, id, ID_BYTES);
  if (same) return is_busy() ? REFUSED_RUNNING : REFUSED_ENDED;
  if (begun_knows(of)) return REFUSED_BEGUN_BEFORE;
  return is_busy() || closing ? REFUSED_BUSY : 0;
}

// Only a here-document can swallow the end of a script without an error. And the parser of bash does not survive every script that
// ends inside a command substitution (5.2: its heap is damaged), so such a one is not shown to the session's shell.
static enum Check checks_for(const uint8_t *script, size_t n) {
  long open = 0;
  for (size_t i = 0; i < n; i++) open += (script[i] == '(') - (script[i] == ')');
  return (open > 0 ? CHECK_PARSES : 0) | (memmem(script, n, "<<", 2) ? CHECK_END : 0);
}

void entry_start(const Header *header, const uint8_t *payload) {
  enum Refusal refusal = why_not(header->id);
  if (!refusal && header->flags != FILE_ENTRY && shell_problem()) refusal = REFUSED_NO_SHELL;
  if (refusal) {
    refuse(header->id, refusal);
    return;
  }
  Cursor cursor = {.at = payload, .left = header->length};
  const uint32_t wall = take_u32(&cursor), quiet = take_u32(&cursor), grace = take_u32(&cursor);
  Command command;
  FileEntry file;
  refusal = cursor.bad ? REFUSED_INVALID : 0;
  if (folder_make_room()) note(PARTIAL, "the session's own folder was full: what was not the keeper's was removed from it");
  switch (header->flags) {
    case COMMAND_ENTRY:
      refusal = command_parse(&cursor, &command) ? folder_write_command(&command) : REFUSED_INVALID;
      if (!refusal && command.input_kind == FED_STDIN && !input_begin(header->id)) refusal = REFUSED_NO_SPACE;
      break;
    case FILE_ENTRY: refusal = file_parse(&cursor, &file) ? 0 : REFUSED_INVALID; break;
    case RESTART_ENTRY: break;
    default: refusal = REFUSED_INVALID;
  }
  if (refusal) {
    refuse(header->id, refusal);
    return;
  }
  if (is_short_of_processes()) sweep_for_room();
  begun_add(header->id);
  lanes_begin(header->id);
  memcpy(id, header->id, ID_BYTES);
  kind = header->flags;
  grace_ms = grace;
  clocks_set(wall, quiet);
  has_report = end_sent = 0;
  resumed = 1;
  oom_kills_before = cgroup_oom_kills();
  began_at = 0;
  memset(&end, 0, sizeof end);
  if (kind == FILE_ENTRY) {
    run_file(&file);
    return;
  }
  if (kind == COMMAND_ENTRY) {
    turn = (Turn){.input = command.input_kind != NO_STDIN, .surroundings = command.env_bytes || command.cwd_bytes};
    turn.traps = memmem(command.script, command.script_bytes, "trap", 4) != 0;
    checks = checks_for(command.script, command.script_bytes);
  }
  phase = WAITING;
  proceed();
}

void entry_ack(const Header *header) {
  if (phase != NOTHING && header->stream < LANES && !memcmp(header->id, id, ID_BYTES)) lane_ack(header->stream, header->offset);
}

void entry_resume(const Header *header, const uint8_t *payload) {
  Cursor cursor = {.at = payload, .left = header->length};
  const uint64_t out = take_u64(&cursor), error = take_u64(&cursor);
  if (cursor.bad || phase == NOTHING || memcmp(header->id, id, ID_BYTES)) return;
  lane_resume(0, out);
  lane_resume(1, error);
  input_resume();
  resumed = 1;
  end_sent = 0;
}

static void stop(enum EndReason reason, uint32_t within_ms) {
  if (ladder_is_up()) return;
  if (phase == RUNNING && kind == COMMAND_ENTRY) {
    entry_on_report(); // it may have ended by itself, or be on its way
    if (phase != RUNNING) return;
    ladder_begin(reason, within_ms, since);
    shell_interrupt();
  } else if (phase == RUNNING && kind == FILE_ENTRY) {
    ladder_begin(reason, within_ms, since);
    kill(helper, SIGKILL);
  } else if (phase == WAITING || phase == CHECKING) {
    if (helper > 0) kill(helper, SIGKILL);
    ladder_begin(reason, within_ms, since);
    conclude(NO_CODE, reason, 0);
  }
}

void entry_stop(const Header *header, const uint8_t *payload) {
  Cursor cursor = {.at = payload, .left = header->length};
  const uint32_t within_ms = take_u32(&cursor);
  if (!cursor.bad && is_busy() && !memcmp(header->id, id, ID_BYTES)) stop(CANCELLED, within_ms);
}

void entry_claimed(void) {
  resumed = phase == NOTHING;
  end_sent = 0;
  entry_hello();
}

void entry_close(uint32_t termination_ms) {
  closing = 1;
  close_at = now_ms() + termination_ms;
  stop(CANCELLED, grace_ms < termination_ms ? grace_ms : termination_ms);
}

static void conclude_report(void) {
  note(report.state, report.reason);
  if (report.no_cwd) conclude(NO_CODE, NO_CWD, 0);
  else conclude(report.code, EXITED, 0);
}

void entry_on_report(void) {
  if (shell_read_report(&report) && phase == RUNNING && kind == COMMAND_ENTRY) {
    has_report = 1;
    // A stopped command has not ended before its whole tree has.
    if (!ladder_is_up()) conclude_report();
  }
  proceed();
}

void entry_on_child(pid_t pid, int status) {
  if (!helper || pid != helper) return;
  helper = 0;
  if (phase == CHECKING) {
    if (!shell_check_failed(check, status)) {
      check_or_run();
      return;
    }
    if (check == CHECK_END) print_error("syntax error: the script ends inside a here-document\n");
    conclude(2, SYNTAX, 0);
  } else if (phase == RUNNING && kind == FILE_ENTRY) {
    if (WIFSIGNALED(status)) {
      conclude(NO_CODE, SIGNALLED, WTERMSIG(status));
    } else {
      conclude(WEXITSTATUS(status) ? 1 : 0, EXITED, 0);
      end.file_errno = WEXITSTATUS(status);
    }
  }
}

static const char *why_shell_died(int signal) {
  if (phase == RUNNING && kind == RESTART_ENTRY) return "the shell was restarted";
  if (ladder_is_up()) return "the shell did not come back when it was stopped, and was replaced";
  return signal ? "the shell was killed by a signal" : "the shell itself ended";
}

void entry_on_shell_death(int status) {
  entry_on_report(); // the last words of a shell that died after its command
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int ended = phase == RUNNING && kind != FILE_ENTRY;
  const char *reason = why_shell_died(signal);
  note(LOST, reason);
  if (ended && (kind == RESTART_ENTRY || ladder_is_up())) sweep_kill(since, shell_pid());
  if (closing) leaving = SHELL_GONE;
  else shell_died(status);
  if (ended && kind == RESTART_ENTRY) conclude(0, EXITED, 0);
  else if (ended) conclude(signal ? 128 + signal : WEXITSTATUS(status), EXITED, signal);
  if (!closing && (!ended || kind == RESTART_ENTRY)) link_put(SHELL, 0, 0, 0, shell_generation(), reason, strlen(reason));
}

// Ends the keeper: the running entry first, then the shell with its EXIT trap, then everything.
static int tick_close(uint64_t now) {
  if (is_busy() && now < close_at) return TICK_MS;
  if (leaving == STAYS && !is_busy() && shell_is_ready()) {
    shell_leave();
    leaving = ASKED_TO_LEAVE;
  }
  if (leaving == ASKED_TO_LEAVE && now < close_at) return (int)(close_at - now);
  kill(-1, SIGKILL);
  if ((link_is_flushed() && (phase != ENDED || end_sent || !resumed)) || now > close_at + CLOSE_FLUSH_MS) _exit(0);
  return TICK_MS;
}

// A restart has no ladder: its old shell has had its time, and all else was to end anyway.
static int tick_running(void) {
  int wake;
  switch (clocks_alarm(&wake)) {
    case NO_ALARM:
      if (!has_company || kind != COMMAND_ENTRY) return wake;
      look_for_a_bomb();
      return wake < 0 || wake > LOOK_MS ? LOOK_MS : wake;
    case WALL_ALARM:
      if (kind == RESTART_ENTRY) sweep_kill(BEGINNING, shell_pid()), shell_kill();
      else stop(WALL, grace_ms);
      break;
    case NO_OUTPUT_ALARM:
      if (kind == COMMAND_ENTRY) stop(NO_OUTPUT, grace_ms);
      break;
  }
  return TICK_MS;
}

static int tick_ladder(void) {
  const int wake = ladder_tick(has_report);
  if (wake != LADDER_DONE) return wake;
  conclude_report();
  return 0;
}

static int tick_check(void) {
  if (clocks_run_ms() > CHECK_WITHIN_MS) kill(helper, SIGKILL);
  return CHECK_WITHIN_MS / 4;
}

int entry_tick(void) {
  int wake = -1;
  if (is_busy()) clocks_count();
  proceed();
  if (phase == CHECKING) wake = tick_check();
  else if (phase == RUNNING && !ladder_is_up()) wake = tick_running();
  else if (phase == RUNNING && kind == COMMAND_ENTRY) wake = tick_ladder();
  if (phase == DRAINING && lanes_settle()) phase = ENDED;
  if (!closing) return wake;
  const int closed = tick_close(now_ms());
  return wake < 0 || closed < wake ? closed : wake;
}

int entry_send(void) {
  if (!resumed || !link_is_up() || phase == NOTHING) return 0;
  if (!input_send() || !lanes_send()) return 1;
  if (phase != ENDED || end_sent) return 0;
  for (int s = 0; s < LANES; s++) end.totals[s] = lane_received(s);
  uint8_t payload[512];
  size_t n = end_reason ? strlen(end_reason) : 0;
  if (n > sizeof payload - sizeof end) n = sizeof payload - sizeof end;
  memcpy(payload, &end, sizeof end);
  if (n) memcpy(payload + sizeof end, end_reason, n);
  end_sent = link_put(END, 0, 0, id, 0, payload, sizeof end + n);
  return !end_sent;
}

void entry_hello(void) {
  struct {
    uint32_t version, state, generation, begun;
    uint64_t received[LANES], acked[LANES];
    char token[TOKEN_BYTES];
    char problem[256];
  } hello = {.version = KEEPER_PROTOCOL_VERSION, .generation = shell_generation(), .begun = begun_count()};
  const char *problem = shell_problem();
  hello.state = is_busy() ? HELLO_RUNNING : problem ? HELLO_NO_SHELL : phase == ENDED ? HELLO_ENDED : HELLO_IDLE;
  for (int s = 0; s < LANES; s++) {
    hello.received[s] = lane_received(s);
    hello.acked[s] = lane_acked(s);
  }
  memcpy(hello.token, identity_token(), TOKEN_BYTES);
  if (problem) strncpy(hello.problem, problem, sizeof hello.problem - 1);
  const size_t n = sizeof hello - sizeof hello.problem + strlen(hello.problem);
  link_put(HELLO, 0, 0, phase == NOTHING ? 0 : id, 0, &hello, n);
}
