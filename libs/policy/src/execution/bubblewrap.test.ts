import { isShellfleetError, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { bubblewrapArguments, type HostRoot, planBubblewrap } from './bubblewrap.ts';
import type { HostAllowances } from './host.ts';

const MIB = 2 ** 20;
const allowances: HostAllowances = {
  workspaces: ['/srv/projects'],
  bounds: { memoryBytes: 8192 * MIB, cpus: 4, pids: 4096, diskQuota: false },
  controlGroups: true,
};
const root: HostRoot = {
  programs: [
    { path: '/usr', linkTo: undefined },
    { path: '/bin', linkTo: 'usr/bin' },
  ],
  kernelFiles: ['/proc/keys'],
};
const everything = {
  sandbox: { modes: ['read-only', 'workspace-write'] as const, networks: ['full', 'limited'] as const, hosts: [] },
};

function plan(spec: object, more: Partial<HostAllowances> = {}) {
  return planBubblewrap(sessionSpecSchema.parse({ policy: 'bubblewrap', ...spec }), { ...allowances, ...more });
}

function pathsOf(spec: object, more: Partial<HostAllowances> = {}) {
  try {
    plan(spec, more);
  } catch (error) {
    if (isShellfleetError(error)) return (error.context.issues as { path: string }[]).map(({ path }) => path);
    throw error;
  }
  return [];
}

describe('planBubblewrap', () => {
  test('plans the same as the policy host, with a writable workspace and without a network', () => {
    expect(plan({ limits: { cpuTimeSeconds: 7 } })).toEqual({
      workspace: undefined,
      group: { memoryBytes: 512 * MIB, cpus: 1, pids: 256 },
      process: { addressSpaceBytes: undefined, cpuTimeSeconds: 7, fileSizeBytes: undefined },
      readOnlyWorkspace: false,
      sharesNetwork: false,
    });
  });

  test('makes a workspace read-only by mode or spec, and shares a listed network', () => {
    expect(plan({ sandbox: { mode: 'read-only' } })).toMatchObject({ readOnlyWorkspace: true });
    expect(plan({ workspace: { path: '/srv/projects', readOnly: true } })).toMatchObject({ readOnlyWorkspace: true });
    expect(plan({ sandbox: { network: 'full' } }, everything as never)).toMatchObject({ sharesNetwork: true });
  });

  test.each([
    ['a proxy that nobody listed', { sandbox: { network: 'limited' } }, ['sandbox.network']],
    ['a network that nobody listed', { sandbox: { network: 'full' } }, ['sandbox.network']],
    [
      'what the host policy refuses',
      { workspace: '/etc', limits: { diskBytes: MIB } },
      ['workspace', 'limits.diskBytes'],
    ],
  ])('refuses %s', (_title, spec, paths) => {
    expect(pathsOf(spec)).toEqual(paths);
  });
});

describe('the arguments of bubblewrap', () => {
  const of = (spec: object, more?: object) => bubblewrapArguments(plan(spec, more as never), root).join(' ');

  // S2-09
  test('unshare everything, empty the root directory, and bind only what is listed', () => {
    const words = of({});
    for (const part of ['--unshare-all --die-with-parent', '--cap-drop ALL', '--seccomp 10 --remount-ro /'])
      expect(words).toContain(part);
    expect(words).toContain('--ro-bind /usr /usr --symlink usr/bin /bin');
    expect(words).toContain('--ro-bind /dev/null /proc/keys');
    const bound = bubblewrapArguments(plan({}), root).flatMap((word, index, all) =>
      word === '--bind' ? [all[index + 1]] : [],
    );
    expect(bound).toEqual(['/dev/shm', '/tmp', '/tmp', '/workspace', '/.shellfleet-run']);
    expect(words).not.toMatch(/--share-net|\/run |\/etc\/(?:shadow|hosts|resolv\.conf) |--(?:ro-)?bind \/ /);
  });

  test('are exactly these, in this order', () => {
    const settings = `alternatives bash.bashrc ca-certificates debian_version group inputrc ld.so.cache ld.so.conf ld.so.conf.d locale.conf localtime mime.types
      nsswitch.conf os-release passwd pki/ca-trust/extracted pki/tls/certs profile profile.d protocols services shells ssl/certs ssl/openssl.cnf terminfo timezone`;
    expect(bubblewrapArguments(plan({}), root)).toEqual(
      [
        '--unshare-all --die-with-parent --new-session --as-pid-1 --cap-drop ALL --hostname shellfleet',
        '--ro-bind /usr /usr --symlink usr/bin /bin',
        ...settings.split(/\s+/).map((name) => `--ro-bind-try /etc/${name} /etc/${name}`),
        '--proc /proc --ro-bind /proc/sys /proc/sys --ro-bind /dev/null /proc/keys --dev /dev --remount-ro /dev --ro-bind /sys/fs/cgroup /sys/fs/cgroup',
        '--bind /dev/shm /dev/shm --bind /tmp /tmp --bind /tmp /var/tmp --bind /workspace /workspace --ro-bind /.shellfleet /.shellfleet',
        '--bind /.shellfleet-run /.shellfleet-run --seccomp 10 --remount-ro / --chdir /workspace --',
      ].flatMap((words) => words.split(' ')),
    );
  });

  test('share a full network with its name resolution, and bind a read-only workspace read-only', () => {
    expect(of({ sandbox: { network: 'full' } }, everything)).toMatch(
      /--unshare-all .*--share-net .*\/etc\/resolv\.conf /,
    );
    expect(of({ sandbox: { mode: 'read-only' } })).toContain('--ro-bind /workspace /workspace');
  });

  test('share no network for `limited`, whose proxy is reached over a file of the session', () => {
    expect(of({ sandbox: { network: 'limited' } }, everything)).toBe(of({}));
  });
});
