// System calls without a C library, because the one of the image is not known.
#ifndef KERNEL_H
#define KERNEL_H
#include <asm/stat.h>
#include <asm/unistd.h>

static inline long call_with_four(long number, long a, long b, long c, long d) {
#if defined __x86_64__
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return result;
#elif defined __aarch64__
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#else
#error "no system calls for this machine"
#endif
}

static inline long call(long number, long a, long b, long c) { return call_with_four(number, a, b, c, 0); }

enum { KILL = 9 /* a signal */, INTERRUPTED = 4 /* an error */ };
enum { BLOCK = 0, SET_MASK = 2, MASK_BYTES = 8 };
enum { AT_CWD = -100, READ_ONLY = 0, WRITE_ONLY = 1, CLOSE_ON_EXEC = 02000000, GET_FLAGS = 3, DUPLICATE_ABOVE = 1030 };

// Each returns a negative number on failure.
static inline long kernel_read(int fd, void *bytes, long n) { return call(__NR_read, fd, (long)bytes, n); }
static inline long kernel_write(int fd, const void *bytes, long n) { return call(__NR_write, fd, (long)bytes, n); }
static inline int kernel_open(const char *path, int flags) { return call(__NR_openat, AT_CWD, (long)path, flags); }
static inline int kernel_close(int fd) { return call(__NR_close, fd, 0, 0); }
static inline int kernel_copy(int from, int to) { return call(__NR_dup3, from, to, 0); }
static inline int kernel_copy_above(int fd, int number) { return call(__NR_fcntl, fd, DUPLICATE_ABOVE, number); }
static inline int kernel_stat(int fd, struct stat *status) { return call(__NR_fstat, fd, (long)status, 0); }
static inline int kernel_flags(int fd) { return call(__NR_fcntl, fd, GET_FLAGS, 0); }
static inline int kernel_mask(int how, const unsigned long *signals) {
  return call_with_four(__NR_rt_sigprocmask, how, (long)signals, 0, MASK_BYTES);
}
static inline int kernel_kill(int pid, int signal) { return call(__NR_kill, pid, signal, 0); }
static inline int kernel_pid(void) { return call(__NR_getpid, 0, 0, 0); }

#endif
