#define _GNU_SOURCE
#include "entry.h"
#include "begun.h"
#include "cgroup.h"
#include "clock.h"
#include "clocks.h"
#include "ending.h"
#include "run_directory.h"
#include "input.h"
#include "kept.h"
#include "ladder.h"
#include "link.h"
#include "output.h"
#include "process_limit.h"
#include "reaper.h"
#include "shell.h"
#include "start.h"
#include "usage.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 10, NO_CODE = -1, AT_ONCE_MS = 10, KILLED_WITHIN_MS = 1000 };

static struct {
  enum Phase {
    NOTHING,  // none has begun
    WAITING,  // for the shell to be ready
    RUNNING,
    DRAINING, // it has ended, but the rest of its output waits for room
    ENDED,
  } phase;
  enum EntryKind kind;
  uint8_t id[ID_BYTES];
  uint32_t grace_ms;
  ShellRun run;
  Moment since;
  uint64_t began_at; // 0 until it runs
  MemoryEvents memory_before;
  Report report;
  int has_report;
  int is_alone;    // it began without processes of earlier ones
  int has_kept;    // it began with the pipes of the entry before, which only the shell holds
  int is_followed; // a worker has started or resumed it since the last claim
  int is_closing;  // the keeper is to end
} entry;

const uint8_t *entry_id(void) { return entry.phase == NOTHING ? 0 : entry.id; }
int entry_is_busy(void) { return entry.phase > NOTHING && entry.phase < ENDED; }
int entry_has_ended(void) { return entry.phase == ENDED; }
int entry_is_delivered(void) { return entry.phase != ENDED || ending_is_sent() || !entry.is_followed; }
Moment entry_since(void) { return entry.phase == RUNNING ? entry.since : moment_now(); }

static int is_entry(const Header *header) { return entry.phase != NOTHING && !memcmp(header->id, entry.id, ID_BYTES); }

// Ends the entry. Its output ends with the bytes that are in its pipes now.
static void conclude(int code, enum EndReason reason, int signal) {
  if (ladder_is_on()) {
    reason = ladder_reason();
    signal = 0; // the keeper sent the signal
  } else if (signal) {
    reason = SIGNALLED;
  }
  const int died = signal || code == 128 + SIGKILL;
  if (died && reason <= SIGNALLED && cgroup_has_killed(entry.memory_before))
    reason = cgroup_has_killed_for_host(entry.memory_before) ? HOST_OUT_OF_MEMORY : OUT_OF_MEMORY;
  const enum Holder holder = kept_end(entry.has_report && !signal ? &entry.report : 0, ladder_is_on());
  ladder_end();
  if (holder != SHELL_ALONE) process_limit_settle(entry.since);
  input_end();
  output_end(holder);
  const uint32_t run_ms = entry.began_at ? now_ms() - entry.began_at : 0;
  const Usage usage = entry.began_at ? usage_end() : (Usage){0};
  ending_set(&(Ending){.code = code, .reason = reason, .signal = signal, .run_ms = run_ms, .usage = usage});
  entry.phase = DRAINING;
}

static void run_now(void) {
  entry.began_at = now_ms();
  usage_begin(entry.has_kept);
  clocks_start();
  entry.phase = RUNNING;
}

// Runs a waiting command or restart as soon as the shell is ready.
static void proceed(void) {
  if (entry.phase != WAITING) return;
  if (shell_problem()) {
    ending_note_shell(LOST, shell_problem());
    conclude(127, EXITED, 0);
    return;
  }
  if (!shell_is_ready()) return;
  if (entry.kind == RESTART_ENTRY) entry.since = BEGINNING;
  else if (entry.has_kept) entry.since = kept_moment();
  else entry.since = entry.is_alone ? moment_alone() : moment_now();
  run_now();
  if (entry.kind == RESTART_ENTRY) shell_leave();
  else shell_run(&entry.run);
}

static enum Refusal check_id(const Header *header) {
  if (is_entry(header)) return entry_is_busy() ? REFUSED_RUNNING : REFUSED_ENDED;
  if (begun_has(header->id)) return REFUSED_BEGUN_BEFORE;
  if (entry_is_busy() || entry.is_closing) return REFUSED_BUSY;
  return shell_problem() ? REFUSED_NO_SHELL : 0;
}

// Selects checks: only a script with `<<` can end inside a here-document, and only one with more `(` than `)` inside a
// command substitution, which damages the heap of bash 5.2.
static int checks_of(const Command *command) {
  long open = 0;
  for (size_t i = 0; i < command->script_bytes; i++) open += (command->script[i] == '(') - (command->script[i] == ')');
  const int has_here_document = memmem(command->script, command->script_bytes, "<<", 2) != 0;
  return (has_here_document ? CHECK_HERE_DOCUMENTS : 0) | (open > 0 ? CHECK_BRACKETS : 0);
}

static enum Refusal prepare_command(const Command *command, const uint8_t *id) {
  entry.run = (ShellRun){.input = command->input_kind != NO_STDIN};
  const enum Refusal refusal = run_directory_write_command(command, &entry.run.texts);
  if (refusal) return refusal;
  entry.run.traps = memmem(command->script, command->script_bytes, "trap", 4) != 0;
  entry.run.checks = checks_of(command);
  if (entry.run.checks && !run_directory_write_check(command, &entry.run.texts)) return REFUSED_NO_SPACE;
  return command->input_kind == OPEN_STDIN && !input_begin(id) ? REFUSED_NO_SPACE : 0;
}

// Replaces a shell in which a command has replaced the descriptors of its texts (SEALED-2). Returns whether the shell
// had them, so that it was given nothing.
static int replace_shell_without_texts(void) {
  int were_given;
  if (shell_holds_texts(&were_given)) return !were_given;
  ending_note_shell(LOST, "a command had replaced the descriptors of its shell's scripts, so the shell was replaced");
  const pid_t shell = shell_pid();
  shell_kill();
  for (int ms = 0; ms < KILLED_WITHIN_MS && shell_pid() == shell; ms++) {
    reap_children();
    entry_on_children();
    usleep(1000);
  }
  return 0;
}

static enum Refusal prepare(const Header *header, const uint8_t *payload, Start *start) {
  const enum Refusal refusal = check_id(header);
  if (refusal) return refusal;
  run_directory_look();
  if (!start_parse(header, payload, start)) return REFUSED_INVALID;
  if (run_directory_make_room()) {
    ending_note_shell(PARTIAL,
                      "the session's own directory was full: files that are not the keeper's were removed from it");
  }
  return start->kind == COMMAND_ENTRY ? prepare_command(&start->command, header->id) : 0;
}

// Returns whether the command is for an earlier shell: the worker has not prepared the fresh one yet.
static int is_for_other_shell(const Header *header) { return header->offset && header->offset != shell_number(); }

// Returns whether nothing surrounds the script and nothing but the script is run.
static int is_plain(const ShellRun *run) {
  return !run->input && !run->traps && !run->checks && !run->texts.before && !run->texts.after;
}

// Makes sure of the processes, the shell and the output pipes. Returns whether the shell alone holds the pipes.
static enum Refusal prepare_shell(const Header *header, const Start *start, int *has_kept) {
  const pid_t shell = shell_pid();
  shell_continue();
  *has_kept = kept_look();
  if (!*has_kept) process_limit_make_room();
  reap_children(); // the shell may have died in this moment
  entry_on_children();
  // The loop takes the descriptors, and the builtin lets go of the pipes before that.
  const int had_texts = start->kind != COMMAND_ENTRY || replace_shell_without_texts();
  if (*has_kept && !had_texts) process_limit_make_room();
  *has_kept = *has_kept && had_texts && shell_pid() == shell;
  if (is_for_other_shell(header)) return REFUSED_OTHER_SHELL;
  return output_begin(header->id, *has_kept ? SHELL_ALONE : UNKNOWN_HOLDER) ? 0 : REFUSED_NO_SPACE;
}

static void choose_pipes(ShellRun *run) {
  const int may_keep = entry.has_kept || kept_allow(entry.is_alone);
  if (!may_keep || !is_plain(run)) run->pipes = OPEN_PIPES;
  else run->pipes = entry.has_kept && run_directory_is_unchanged() ? KEPT_PIPES : OPEN_AND_KEEP_PIPES;
}

void entry_start(const Header *header, const uint8_t *payload) {
  Start start;
  int has_kept = 0;
  enum Refusal refusal = prepare(header, payload, &start);
  if (!refusal) {
    refusal = prepare_shell(header, &start, &has_kept);
    if (refusal) input_end();
  }
  if (refusal) {
    // If the link has no room, the refusal is lost, and the worker starts the entry again.
    link_put(REFUSED, 0, refusal, header->id, shell_number(), 0, 0);
    return;
  }
  begun_add(header->id);
  ending_clear();
  memcpy(entry.id, header->id, ID_BYTES);
  entry.kind = start.kind;
  entry.grace_ms = start.kill_grace_ms;
  clocks_set(start.timeout_ms, start.no_output_timeout_ms);
  entry.has_report = 0;
  entry.is_followed = 1;
  entry.has_kept = has_kept;
  if (!has_kept) entry.memory_before = cgroup_memory_events();
  entry.began_at = 0;
  entry.phase = WAITING;
  entry.is_alone = shell_is_ready() && process_limit_is_alone();
  choose_pipes(&entry.run);
  proceed();
}

void entry_ack(const Header *header) {
  if (is_entry(header) && header->stream < STREAMS) output_ack(header->stream, header->offset);
}

void entry_resume(const Header *header, const uint8_t *payload) {
  Cursor cursor = {.at = payload, .left = header->length};
  const uint64_t out = take_u64(&cursor), error = take_u64(&cursor);
  if (cursor.bad || !is_entry(header)) return;
  output_resume(0, out);
  output_resume(1, error);
  input_resume();
  entry.is_followed = 1;
  ending_repeat();
}

static void stop(enum EndReason reason, uint32_t within_ms) {
  if (ladder_is_on()) return;
  if (entry.phase == RUNNING && entry.kind == COMMAND_ENTRY) {
    entry_on_report(); // reads a report that has arrived: the command may have ended by itself
    if (entry.phase != RUNNING) return;
    ladder_begin(reason, within_ms, entry.since);
    shell_interrupt();
  } else if (entry.phase == WAITING) {
    ladder_begin(reason, within_ms, entry.since);
    conclude(NO_CODE, reason, 0);
  }
}

void entry_stop(const Header *header, const uint8_t *payload) {
  Cursor cursor = {.at = payload, .left = header->length};
  const uint32_t within_ms = take_u32(&cursor);
  if (!cursor.bad && entry_is_busy() && is_entry(header)) stop(CANCELLED, within_ms);
}

void entry_on_claim(void) {
  entry.is_followed = entry.phase == NOTHING;
  ending_repeat();
}

void entry_begin_closing(uint32_t termination_ms) {
  entry.is_closing = 1;
  stop(CANCELLED, entry.grace_ms < termination_ms ? entry.grace_ms : termination_ms);
}

static void conclude_report(void) {
  const Report *report = &entry.report;
  ending_note_shell(report->state, report->state_reason);
  conclude(report->reason == NO_CWD ? NO_CODE : report->code, report->reason, 0);
}

void entry_on_report(void) {
  const int was_ready = shell_is_ready();
  const int has_ended = shell_read_report(&entry.report);
  // A shell that continues with a saved state reports what it could not restore.
  if (!was_ready && shell_is_ready()) ending_note_shell(entry.report.state, entry.report.state_reason);
  if (has_ended && entry.phase == RUNNING && entry.kind == COMMAND_ENTRY) {
    entry.has_report = 1;
    // A command that is being stopped ends only when its whole process tree has ended.
    if (!ladder_is_on()) conclude_report();
  }
  proceed();
}

static const char CONTINUED[] = "a signal ended the shell; a new one continues with its variables, functions and "
                                "directory, without its descriptors, limits and table of background jobs";

static const char *describe_shell_death(int signal) {
  if (entry.phase == RUNNING && entry.kind == RESTART_ENTRY) return "the shell was restarted";
  if (ladder_is_on()) return "the shell did not come back when it was stopped, and was replaced";
  return signal ? "the shell was killed by a signal" : "the shell itself ended";
}

static void on_shell_end(int status) {
  entry_on_report(); // the last report of a shell that died after its command
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int ended = entry.phase == RUNNING;
  const int is_restart = entry.kind == RESTART_ENTRY;
  const int code = signal ? 128 + signal : WEXITSTATUS(status);
  const int continues = ended && !is_restart && !entry.is_closing && !ladder_is_on() && shell_can_continue();
  const char *reason = continues ? CONTINUED : describe_shell_death(signal);
  ending_note_shell(continues ? PARTIAL : LOST, reason);
  if (ended && (is_restart || ladder_is_on())) sweep_kill(entry.since, 0);
  if (entry.is_closing) shell_forget();
  else shell_replace(status, continues ? &code : 0);
  if (ended && is_restart) conclude(0, EXITED, 0);
  else if (ended) conclude(code, EXITED, signal);
  if (entry.is_closing || (ended && !is_restart)) return;
  link_put(SHELL, 0, 0, 0, shell_number(), reason, strlen(reason)); // without room: HELLO and END carry the number, too
}

void entry_on_children(void) {
  int status;
  if (reaper_take(shell_pid(), &status)) on_shell_end(status);
}

// Applies the deadlines. A restart has no stop ladder: all processes end anyway, and the old shell had its time to end.
static int tick_running(void) {
  int wake;
  switch (clocks_alarm(&wake)) {
    case NO_ALARM: {
      if (entry.kind != COMMAND_ENTRY) return wake;
      const int limit = process_limit_tick(entry.since);
      return limit >= 0 && (wake < 0 || wake > limit) ? limit : wake;
    }
    case WALL_ALARM:
      if (entry.kind != RESTART_ENTRY) {
        stop(WALL, entry.grace_ms);
        break;
      }
      sweep_kill(BEGINNING, shell_pid());
      shell_kill();
      break;
    case NO_OUTPUT_ALARM: stop(NO_OUTPUT, entry.grace_ms); break;
  }
  return TICK_MS;
}

static int tick_ladder(void) {
  const int wake = ladder_tick(entry.has_report);
  if (wake != LADDER_DONE) return wake;
  conclude_report();
  return 0;
}

int entry_tick(void) {
  int wake = -1;
  if (entry_is_busy()) clocks_count();
  proceed();
  if (entry.phase == RUNNING && !ladder_is_on()) wake = tick_running();
  else if (entry.phase == RUNNING) wake = tick_ladder();
  if (entry.phase == DRAINING && output_settle()) entry.phase = ENDED;
  return wake;
}

int entry_output_after(void) {
  if (entry.phase == DRAINING) return 0;
  if (entry.phase != RUNNING) return -1;
  const uint64_t passed = now_ms() - entry.began_at;
  return entry.kind != COMMAND_ENTRY || passed >= AT_ONCE_MS ? 0 : (int)(AT_ONCE_MS - passed);
}

int entry_send(void) {
  if (!entry.is_followed || !link_is_up() || entry.phase == NOTHING) return 0;
  if (!input_send() || !output_send()) return 1;
  return entry.phase == ENDED && !ending_send(entry.id);
}
