import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { sessionSeccompProfile } from './seccomp.ts';

const named = new Map<string, number>();
for (const rule of sessionSeccompProfile().syscalls) {
  for (const name of rule.action === 'SCMP_ACT_ALLOW' ? rule.names : []) named.set(name, (named.get(name) ?? 0) + 1);
}

describe('the seccomp profile of sessions', () => {
  test.each(
    `io_uring_setup io_uring_enter io_uring_register ptrace process_vm_readv process_vm_writev process_madvise userfaultfd keyctl
  add_key request_key bpf perf_event_open kcmp unshare setns mount umount2 pivot_root chroot open_by_handle_at
  name_to_handle_at fanotify_init init_module finit_module kexec_load reboot swapon syslog acct clone3 pidfd_getfd
  iopl ioperm modify_ldt quotactl settimeofday clock_settime move_mount open_tree fsopen`.split(/\s+/),
  )('does not let a session call %s', (name) => {
    expect(named.has(name)).toBe(false);
  });

  test('allows clone only without new namespaces, and answers clone3 with ENOSYS', () => {
    const rules = sessionSeccompProfile().syscalls;
    expect(rules.find((rule) => rule.names.includes('clone'))).toEqual({
      names: ['clone'],
      action: 'SCMP_ACT_ALLOW',
      args: [{ index: 0, value: 0x7e020000, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
    });
    expect(rules.find((rule) => rule.names.includes('clone3'))).toEqual({
      names: ['clone3'],
      action: 'SCMP_ACT_ERRNO',
      errnoRet: 38,
    });
  });

  test('names each call once, except calls that an argument distinguishes', () => {
    const repeated = [...named].filter(([, count]) => count > 1).map(([name]) => name);
    expect(repeated).toEqual(['socket', 'personality']);
  });

  test('is infra/seccomp/session.json (written by npm run seccomp -w libs/policy)', () => {
    const file = new URL('../../../../infra/seccomp/session.json', import.meta.url);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(sessionSeccompProfile());
  });
});
