// Lists the system calls that a session's processes may make. Every other call fails with EPERM. Calls that common
// profiles allow and this one does not: io_uring (seccomp cannot filter its operations), ptrace, process_vm_*
// (debuggers do not justify the kernel surface), userfaultfd, the key ring, bpf, perf, kcmp, mounts, namespaces, file
// handles by number, and 32-bit and x32 entry points.

const FILES = `
  access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate
  fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync flock fstat fstatfs fsync ftruncate futimesat getcwd
  getdents getdents64 ioctl lchown link linkat lseek lstat mkdir mkdirat mknod mknodat newfstatat open openat openat2 pread64
  preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv rename renameat renameat2 rmdir sendfile
  splice stat statfs statx symlink symlinkat sync sync_file_range syncfs tee truncate umask unlink unlinkat utime utimensat
  utimes vmsplice write writev cachestat
  getxattr fgetxattr lgetxattr setxattr fsetxattr lsetxattr listxattr flistxattr llistxattr removexattr fremovexattr
  lremovexattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch
  io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy`;

const MEMORY = `
  brk get_mempolicy madvise membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock
  munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages map_shadow_stack`;

const PROCESSES = `
  alarm arch_prctl capget capset execve execveat exit exit_group fork futex futex_wait futex_waitv futex_wake futex_requeue
  get_robust_list getcpu getegid geteuid getgid getgroups getitimer getpgid getpgrp getpid getppid getpriority getrandom
  getresgid getresuid getrlimit getrusage getsid gettid getuid ioprio_get ioprio_set kill pause pidfd_open
  pidfd_send_signal prctl prlimit64 process_mrelease restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask
  rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max
  sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
  sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp set_robust_list set_tid_address
  setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid
  setuid sigaltstack sysinfo tgkill tkill uname vfork wait4 waitid
  landlock_create_ruleset landlock_add_rule landlock_restrict_self`;

const WAITING = `
  epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 pipe pipe2 poll ppoll pselect6
  select signalfd signalfd4 clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time timer_create timer_delete
  timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times`;

const TALKING = `
  accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto
  setsockopt shutdown socketpair
  mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop
  semtimedop shmat shmctl shmdt shmget`;

/** Socket families that a shell without a network uses: unix, inet, inet6, and netlink (for getifaddrs). */
const SOCKET_FAMILIES = [1, 2, 10, 16];

/** All CLONE_NEW* flags of clone(2), which a fork or a new thread does not set. */
const NEW_NAMESPACE_FLAGS = 0x7e020000;

/**
 * Personalities of Linux and similar systems that keep address randomisation. 0xffffffff only reads the current
 * personality.
 */
const PERSONALITIES = [0x0, 0x0008, 0x20000, 0x20008, 0xffffffff];

const ENOSYS = 38;

export interface SeccompRule {
  names: string[];
  action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO';
  errnoRet?: number;
  args?: { index: number; value: number; valueTwo?: number; op: 'SCMP_CMP_EQ' | 'SCMP_CMP_MASKED_EQ' }[];
}

export interface SeccompProfile {
  defaultAction: 'SCMP_ACT_ERRNO';
  archMap: { architecture: string; subArchitectures: string[] }[];
  syscalls: SeccompRule[];
}

/** Returns the profile of every session, in the format of the Docker engine (20.10 and later). */
export function sessionSeccompProfile(): SeccompProfile {
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    archMap: [
      { architecture: 'SCMP_ARCH_X86_64', subArchitectures: [] },
      { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: [] },
    ],
    syscalls: [
      allow([FILES, MEMORY, PROCESSES, WAITING, TALKING].flatMap(words)),
      ...SOCKET_FAMILIES.map((family) => allow(['socket'], { index: 0, value: family, op: 'SCMP_CMP_EQ' })),
      ...PERSONALITIES.map((value) => allow(['personality'], { index: 0, value, op: 'SCMP_CMP_EQ' })),
      allow(['clone'], { index: 0, value: NEW_NAMESPACE_FLAGS, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }),
      // The flags of clone3 are in memory, which a filter cannot read. On ENOSYS the C library falls back to clone.
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
    ],
  };
}

function allow(names: string[], arg?: NonNullable<SeccompRule['args']>[number]): SeccompRule {
  return { names, action: 'SCMP_ACT_ALLOW', ...(arg ? { args: [arg] } : {}) };
}

function words(text: string): string[] {
  return text.split(/\s+/).filter(Boolean).sort();
}
