// Runs real programs, and finds those that start another program or write:
//   run < frames     a frame is a 4-byte length, a letter, and arguments with a NUL behind each
// The letter is 's' for a program that shall write nothing and start nothing, 'n' for one that shall start nothing,
// and 'b' for a builtin of /bin/sh that shall do neither. A seccomp filter ends a program at its first system call
// that does.
// LOG gets a byte for each frame: '0' it did not, '1' it did, '?' there is no such program. Static, because the images
// differ in their C library.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST = 1 << 16, MOST_ARGUMENTS = 256, MOST_MS = 100, PROGRAM_FD = 777, MISSING = 213, BROKEN = 99 };
static const char LOG[] = "/trial/out/log", DIRECTORY[] = "/tmp/directory", BESIDE[] = "/tmp";
static const char *const PLACES[] = {"/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"};

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static const int STARTS[] = {
  SYS_execve,
  SYS_ptrace,
#ifdef SYS_fork
  SYS_fork,
  SYS_vfork,
#endif
};
static const int WRITES[] = {
  SYS_unlinkat,  SYS_renameat2, SYS_mkdirat,   SYS_linkat,   SYS_symlinkat,    SYS_mknodat,       SYS_fchmod,
  SYS_fchmodat,  SYS_fchown,    SYS_fchownat,  SYS_truncate, SYS_ftruncate,    SYS_utimensat,     SYS_setxattr,
  SYS_lsetxattr, SYS_fsetxattr, SYS_fallocate, SYS_mount,    SYS_umount2,      SYS_sethostname,   SYS_kill,
  SYS_renameat,  SYS_chroot,    SYS_acct,      SYS_syslog,   SYS_settimeofday, SYS_clock_settime, SYS_removexattr,
#ifdef SYS_open
  SYS_creat,     SYS_unlink,    SYS_rename,    SYS_mkdir,    SYS_rmdir,        SYS_link,          SYS_symlink,
  SYS_mknod,     SYS_chmod,     SYS_chown,     SYS_lchown,   SYS_utime,        SYS_utimes,        SYS_futimesat,
#endif
};

static struct sock_filter filter[256];
static unsigned short length;

static void add(uint16_t code, uint32_t value, uint8_t jumps, uint8_t falls) {
  if (length == sizeof filter / sizeof *filter) exit(BROKEN);
  filter[length++] = (struct sock_filter){code, jumps, falls, value};
}

static void load(size_t at) { add(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at, 0, 0); }
static void answer(uint32_t action) { add(BPF_RET | BPF_K, action, 0, 0); }
static size_t argument(int index) { return offsetof(struct seccomp_data, args) + (size_t)index * sizeof(uint64_t); }

static void answer_to(int number, uint32_t action) {
  add(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
  answer(action);
}

/** Ends the program where the lower half of an argument has any of these bits. */
static void forbid_bits(int number, int index, uint32_t bits) {
  add(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
  load(argument(index));
  add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
  answer(SECCOMP_RET_KILL_PROCESS);
  answer(SECCOMP_RET_ALLOW);
}

/** Allows a call with this argument; the other calls get an answer. */
static void allow_only(int number, int index, uint32_t value, uint32_t otherwise) {
  add(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
  load(argument(index));
  add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
  answer(SECCOMP_RET_ALLOW);
  answer(otherwise);
}

static void guard(int may_write) {
  const uint32_t kill = SECCOMP_RET_KILL_PROCESS, refuse = SECCOMP_RET_ERRNO;
  load(offsetof(struct seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
  answer(kill);
  load(offsetof(struct seccomp_data, nr));
  // The arguments of these calls are in memory, which a filter cannot read. When they fail, the C library uses older
  // calls.
  for (int call = 0; call < 3; call++)
    answer_to((int[]){SYS_clone3, SYS_openat2, SYS_io_uring_setup}[call], refuse | ENOSYS);
  for (size_t at = 0; at < sizeof STARTS / sizeof *STARTS; at++) answer_to(STARTS[at], kill);
  // The program itself is started from its descriptor.
  allow_only(SYS_execveat, 0, PROGRAM_FD, kill);
  add(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
  load(argument(0));
  add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
  answer(SECCOMP_RET_ALLOW);
  answer(kill);
  // A name service is asked over a unix socket, which nothing listens at here.
  add(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4);
  load(argument(0));
  add(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 1);
  answer(refuse | EACCES);
  answer(kill);
  if (!may_write) {
    const uint32_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
    for (size_t at = 0; at < sizeof WRITES / sizeof *WRITES; at++) answer_to(WRITES[at], kill);
    forbid_bits(SYS_openat, 2, writing);
#ifdef SYS_open
    forbid_bits(SYS_open, 1, writing);
#endif
  }
  answer(SECCOMP_RET_ALLOW);
  struct sock_fprog program = {length, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(BROKEN);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at) {
  (void)status, (void)type, (void)at;
  return remove(path);
}

static void write_file(const char *name, const char *text) {
  int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0700);
  if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text)) exit(BROKEN);
  close(file);
}

/** Creates files with names that a program may take for an option's value or a script, and with scripts in them. */
static void make_directory(void) {
  if (chdir(BESIDE) != 0) exit(BROKEN);
  nftw(DIRECTORY, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  if (mkdir(DIRECTORY, 0700) != 0 || chdir(DIRECTORY) != 0 || mkdir("dir", 0700) != 0) exit(BROKEN);
  const char *names[] = {"a", "b", "f", "1p", "1,2p", "-x", "dir/a"};
  for (size_t at = 0; at < sizeof names / sizeof *names; at++)
    write_file(names[at], "1e touch made\n2w made\na\na\nb\n");
}

static int open_program(const char *name) {
  char path[4096];
  for (size_t at = 0; at < sizeof PLACES / sizeof *PLACES; at++) {
    if (snprintf(path, sizeof path, "%s/%s", PLACES[at], name) >= (int)sizeof path) return -1;
    int program = open(path, O_RDONLY);
    if (program >= 0) return program;
  }
  return -1;
}

static void run_guarded(char letter, char **arguments) {
  int input[2], null = open("/dev/null", O_RDWR);
  char *builtin[MOST_ARGUMENTS + 4] = {"sh", "-c", "\"$0\" \"$@\""};
  char **argv = arguments;
  if (letter == 'b') {
    for (int at = 0; arguments[at]; at++) builtin[3 + at] = arguments[at];
    argv = builtin;
  }
  int program = open_program(argv[0]);
  if (program < 0) _exit(MISSING);
  if (pipe(input) != 0 || write(input[1], "b\na\na\n", 6) != 6) _exit(BROKEN);
  dup2(input[0], 0);
  dup2(null, 1);
  dup2(null, 2);
  dup2(program, PROGRAM_FD);
  for (int fd = 3; fd < PROGRAM_FD; fd++) close(fd);
  struct itimerval timer = {{0, 0}, {0, MOST_MS * 1000}};
  struct rlimit size = {1 << 20, 1 << 20};
  setpgid(0, 0);
  setitimer(ITIMER_REAL, &timer, NULL); // kept by exec: a program that waits ends
  setrlimit(RLIMIT_FSIZE, &size);
  static char *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", NULL, NULL};
  // Some runs read their options in the way of POSIX.
  if (strlen(arguments[1] ? arguments[1] : "") % 2 == 1) environment[2] = "POSIXLY_CORRECT=1";
  guard(letter == 'n');
  syscall(SYS_execveat, PROGRAM_FD, "", argv, environment, AT_EMPTY_PATH);
  _exit(BROKEN);
}

static char observe(char letter, char **arguments) {
  make_directory();
  pid_t child = fork();
  if (child < 0) exit(BROKEN);
  if (child == 0) run_guarded(letter, arguments);
  int status;
  waitpid(child, &status, 0);
  kill(-child, SIGKILL);
  if (WIFEXITED(status) && WEXITSTATUS(status) == BROKEN) exit(BROKEN);
  if (WIFEXITED(status) && WEXITSTATUS(status) == MISSING) return '?';
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? '1' : '0';
}

int main(void) {
  static char frame[LONGEST + 1];
  uint32_t size;
  int log = open(LOG, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  while (fread(&size, sizeof size, 1, stdin) == 1) {
    if (size > LONGEST || fread(frame, 1, size, stdin) != size) return BROKEN;
    char *arguments[MOST_ARGUMENTS] = {NULL};
    int count = 0;
    for (char *at = frame + 1; at < frame + size && count < MOST_ARGUMENTS - 1; at += strlen(at) + 1)
      arguments[count++] = at;
    char found = observe(frame[0], arguments);
    if (write(log, &found, 1) != 1) return BROKEN;
  }
  return 0;
}
