import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launcherPath } from '@shellfleet/keeper';
import { sessionSpecSchema } from '@shellfleet/protocol';
import { createHostSandboxes, openBubblewrap } from '@shellfleet/worker';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BoxesInEnclosure, type BoxInEnclosure, openBoxesInEnclosure } from '../support/boxes-in-enclosure.ts';
import { isRoot, processesOf } from '../support/host-leftovers.ts';
import { KeeperTerminal } from '../support/keeper-terminal.ts';
import { until } from '../support/until.ts';

const UID = 4719;
const MIB = 2 ** 20;
describe.runIf(isRoot)('the bubblewrap policy', () => {
  let boxes: BoxesInEnclosure;
  let shared: BoxInEnclosure;
  beforeAll(async () => {
    boxes = await openBoxesInEnclosure(UID, openBubblewrap);
    shared = await boxes.start();
  });
  afterAll(() => boxes?.close());
  const run = (script: string) => shared.client.run(script);

  // S2-10
  test('is available on this machine, and names what is missing without bwrap', async () => {
    await boxes.sandboxes.check();
    await expect(openBubblewrap(boxes.options.directory, '/nonexistent')).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringContaining('apt-get install bubblewrap'),
    });
  });

  test('is refused with the error of bubblewrap where that cannot make its namespaces', async () => {
    const enclosure = boxes.options.enclosure;
    if (enclosure === undefined) throw new Error('there is no enclosure');
    const blocked = await createHostSandboxes({
      ...boxes.options,
      enclosure: {
        ...enclosure,
        plan: (spec, allowances) => {
          const { plan, program } = enclosure.plan(spec, allowances);
          const [bwrap = '', ...rest] = program;
          return { plan, program: [bwrap, '--bind', '/nonexistent', '/nonexistent', ...rest] };
        },
      },
    });
    await expect(blocked.check()).rejects.toMatchObject({
      code: 'SANDBOX_UNAVAILABLE',
      message: expect.stringMatching(/bubblewrap policy: .*bwrap: Can't find source path \/nonexistent/),
    });
  });

  describe('a session', () => {
    test('sees a root directory with programs, settings and its own directories, all write-protected', async () => {
      const { out } =
        await run(`ls -A / | tr '\\n' ' '; echo; ls -A /sys /var; touch /new /usr/new /etc/new /dev/new /sys/new 2>&1 | wc -l
        ls -A /run /home /root /opt /srv /boot 2>&1 | grep -vc 'No such file'; ls /etc | grep -E 'shadow|sudoers|ssh|docker|hosts|resolv'`);
      const [root, ...rest] = out.split('\n');
      expect(root?.split(' ').filter((name) => !/^(lib|lib32|lib64|libx32)$/.test(name))).toEqual(
        expect.arrayContaining([
          '.shellfleet',
          '.shellfleet-run',
          'bin',
          'dev',
          'etc',
          'proc',
          'sys',
          'tmp',
          'usr',
          'var',
        ]),
      );
      expect(root).not.toMatch(/ (home|root|run|opt|srv|boot|mnt) /);
      expect(rest.join('\n')).toBe('/sys:\nfs\n\n/var:\ntmp\n5\n0\n');
    });

    test('runs as the operator’s user, without capabilities, new privileges or other groups', async () => {
      const { out, end } = await run(
        `id -u; id -g; id -G; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'`,
      );
      expect(out.split('\n')).toEqual([
        ...[String(UID), String(UID), String(UID)],
        ...['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}:0000000000000000`),
        ...['NoNewPrivs:1', 'Seccomp:2', ''],
      ]);
      expect(end.usage?.peakMemoryBytes).toBeGreaterThan(2 ** 16);
    });

    test('sees a clean environment, a name of its own and no process of the host', async () => {
      const { out } = await run(
        `env | cut -d= -f1 | sort | grep -v '^_$' | tr '\\n' ' '; echo; uname -n; ls -d /proc/[0-9]* | wc -l; cat /proc/net/dev`,
      );
      const [env, name, processes, ...interfaces] = out.split('\n');
      expect([env, name]).toEqual(['HOME PATH PWD SHLVL ', 'shellfleet']);
      expect(interfaces.filter((line) => /^ *[^ ]+: /.test(line))).toEqual([expect.stringMatching(/^ *lo: /)]);
      expect(Number(processes)).toBeLessThan(8);
    });

    // S3-18
    test('has proxy variables in its environment only if its network is limited', async () => {
      const own = await boxes.start();
      const limited = { network: 'limited' as const, allowedHosts: ['a.test'] };
      const outer = sessionSpecSchema.parse({ policy: 'bubblewrap', sandbox: limited });
      const allowances = { modes: [], networks: ['limited' as const], hosts: ['a.test'] };
      const beside = { sandboxId: own.sandbox.id, allowances };
      const sandbox = await boxes.sandboxes.create(own.sandbox.session, outer, { beside });
      try {
        const wide = await boxes.connect(sandbox, 1, true);
        const names = `env | cut -d= -f1 | grep -v '^_$' | LC_ALL=C sort | tr '\\n' ' '`;
        expect((await own.client.run(names)).out).toBe('HOME PATH PWD SHLVL ');
        const ofProxy = 'HTTPS_PROXY HTTP_PROXY NODE_USE_ENV_PROXY NO_PROXY PATH PWD SHLVL';
        expect((await wide.run(names)).out).toBe(
          `ALL_PROXY HOME ${ofProxy} all_proxy http_proxy https_proxy no_proxy `,
        );
        expect((await wide.run('echo $HTTP_PROXY $http_proxy')).out).toMatch(/^(http:\/\/127\.0\.0\.1:\d+) \1\n$/);
      } finally {
        await sandbox.remove();
      }
    });

    test('gets the results of forbidden system calls that the profile specifies', async () => {
      const [ring, trace, unshare, keyctl] = process.arch === 'x64' ? [425, 101, 272, 250] : [425, 117, 97, 219];
      const calls = [
        ...['$$', `${ring}, 1, 0`, `${trace}, 0, 0`, `${unshare}, 0x10000000`, `${keyctl}, 0, 0`],
        ...[
          '435, 0, 0',
          `${process.arch === 'x64' ? 41 : 198}, 40, 1, 0`,
          `${process.arch === 'x64' ? 41 : 198}, 1, 1, 0`,
        ],
      ].slice(1);
      const script = calls.map((call) => `print syscall(${call}) == -1 ? $! + 0 : 0, " ";`).join('');
      expect((await run(`perl -e '${script}'`)).out.trim()).toBe('1 1 1 1 38 1 0');
    });
  });

  describe('a shell in the sandbox', () => {
    test('keeps state, files and background processes, and has input and terminals', async () => {
      const { client } = await boxes.start();
      await client.run('kept=yes; cd /tmp; sleep 1000 &');
      expect((await client.run('exit 3')).code).toBe(3);
      expect((await client.run('echo $kept; pwd; echo oops >&2; (exit 4)')).out).toBe('yes\n/tmp\n');
      expect((await client.run('cat', { stdin: Buffer.from('given') })).out).toBe('given');
      await client.run('echo text > /workspace/file');
      const terminal = new KeeperTerminal(client.shell);
      terminal.type('cat /workspace/file; tty\n');
      await until(
        () => terminal.shown,
        (shown) => /text\r\n\/dev\/pts\/\d/.test(shown),
      );
    });

    test('survives a timeout, which ends the whole process tree', async () => {
      const { client } = await boxes.start();
      await client.run('kept=yes');
      const ended = await client.run(`trap '' TERM INT; sh -c 'trap "" TERM INT; sleep 8765 & sleep 8765'`, {
        timeoutMs: 300,
        killGraceMs: 300,
      });
      expect(ended.end.reason).toBe('wall');
      // pgrep leaves out the state Z, because processes that have ended may not be reaped yet.
      expect((await client.run('pgrep -r D,R,S,T -x sleep; echo $kept')).out).toBe('yes\n');
    });

    test('is reported as out of memory when its session exceeds the limit', async () => {
      const { sandbox, client } = await boxes.start({ limits: { memoryBytes: 64 * MIB, pids: 64 } });
      const bomb = await client.run(`python3 -c 'x = bytearray(200 * 2**20)'`).catch(() => undefined);
      if (bomb === undefined) expect((await sandbox.died).reason).toBe('oom');
      else expect([bomb.code, (await client.run('echo on')).out]).toEqual([137, 'on\n']);
    });
  });

  describe('the workspace of a session', () => {
    let directory: string;
    beforeAll(async () => {
      directory = await mkdtemp('/var/lib/sf-wall-');
      await mkdir(join(directory, 'project'));
      for (const path of [directory, join(directory, 'project')]) {
        await chmod(path, 0o755);
        await chown(path, UID, UID);
      }
    });
    afterAll(() => rm(directory, { recursive: true }));

    test('is a directory of the host, which `read-only` protects from writes', async () => {
      const path = join(directory, 'project');
      const writes = await boxes.start({ workspace: path });
      await writes.client.run('echo first > f; echo $PWD');
      expect(await readFile(join(path, 'f'), 'utf8')).toBe('first\n');
      for (const spec of [
        { workspace: path, sandbox: { mode: 'read-only' } },
        { workspace: { path, readOnly: true } },
      ] as const) {
        const { client } = await boxes.start(spec);
        const { out, err, code } = await client.run('cat f; echo t > /tmp/t; cat /tmp/t; echo second > f');
        expect([out, code, err]).toEqual(['first\nt\n', 1, expect.stringContaining('Read-only file system')]);
      }
    });

    test('is a new directory if the spec names none, and is removed with the session', async () => {
      const { sandbox, client } = await boxes.start();
      await client.run('echo mine > f');
      expect((await boxes.filesOf(sandbox)).length).toBeGreaterThanOrEqual(3);
      await sandbox.remove();
      expect(await boxes.filesOf(sandbox)).toEqual([]);
    });
  });

  test('adopts the running shells and their state after a restart of the worker', async () => {
    const { sandbox, client } = await boxes.start();
    await client.run('kept=yes; fn() { echo "fn $1"; }');
    const restarted = await createHostSandboxes(boxes.options);
    const found = (await restarted.list()).find(({ sandbox: { id } }) => id === sandbox.id);
    expect(found).toMatchObject({ state: 'running', sandbox: { session: sandbox.session, link: sandbox.link } });
    if (found === undefined) throw new Error('it was not found');
    client.shell.disconnect();
    const next = await boxes.connect(found.sandbox, 2);
    expect((await next.run('echo $kept; fn here')).out).toBe('yes\nfn here\n');
    await restarted.close();
  });

  test('works for a worker without root, as the worker’s own user', async () => {
    const place = await mkdtemp(join(tmpdir(), 'sf-launch-'));
    const own = (name: string) => join(place, name);
    await copyFile(await launcherPath(), own('launch'));
    const enclosure = await openBubblewrap(place);
    await mkdir(own('workspace'));
    for (const path of [place, own('launch'), own('filter'), own('workspace')]) await chown(path, UID, UID);
    const bounds = { memoryBytes: 2 ** 40, cpus: 64, pids: 4096, diskQuota: false };
    const spec = sessionSpecSchema.parse({ policy: 'bubblewrap' });
    const { program } = enclosure.plan(spec, { workspaces: [], bounds, controlGroups: false });
    const files = ['--process', own('process'), '--ended', own('ended'), '--workspace', own('workspace')];
    const user = ['--user', `${UID}:${UID}`, '--same-user', '--scratch-bytes', '1048576', '--show-errors'];
    const script = `exec > out; id -u; echo $$; ls /home; grep -E '^(CapEff|Seccomp):' /proc/self/status | tr -d '\\t'`;
    const args = [...files, ...user, '--descriptor', own('filter'), '--', ...program, '/bin/sh', '-c', script];
    const child = spawn(own('launch'), args, { uid: UID, gid: UID, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    child.stderr.on('data', (data) => {
      said += String(data);
    });
    await once(child, 'close');
    expect(said).toMatch(/^ls: cannot access '\/home'.*\n$/);
    expect(await readFile(own('workspace/out'), 'utf8')).toBe(`${UID}\n1\nCapEff:0000000000000000\nSeccomp:2\n`);
    await rm(place, { recursive: true });
  });

  test.each(['keeper', 'enclosure', 'launcher'] as const)(
    'ends the whole session when the %s is killed',
    async (victim) => {
      const others = await processesOf(UID);
      const { sandbox, client } = await boxes.start();
      await client.run('(setsid sleep 3457 &) ; sleep 3457 & true');
      const pids = await boxes.processesOf(sandbox);
      process.kill(victim === 'keeper' ? await childOf(pids.enclosure) : pids[victim], 'SIGKILL');
      expect(await sandbox.died).toEqual({ reason: 'killed', exitCode: null });
      await expect.poll(() => processesOf(UID)).toEqual(others);
    },
  );
});

async function childOf(parent: number): Promise<number> {
  for (const pid of await processesOf(UID)) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    if (Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]) === parent) return pid;
  }
  throw new Error(`${parent} has no child`);
}
