import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { installPackages, isDebianFamily } from './debian-packages.ts';
import { removeStalePolicy } from './no-service-starts.ts';

describe('packages of Debian', () => {
  test.each([
    ['ID=debian\nVERSION_ID="12"', true],
    ['ID=ubuntu\nID_LIKE=debian', true],
    ['ID=pop\nID_LIKE="ubuntu debian"', true],
    ['ID=fedora', false],
    ['NAME="not debian"\nID=alpine', false],
    ['', false],
  ])('are installed only where os-release names a Debian: %j', (text, expected) => {
    expect(isDebianFamily(text)).toBe(expected);
  });

  // Tests the installation with stubs for apt-get and systemctl, and a separate root.

  let root: string;
  let path: string | undefined;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'sf-apt-'));
    await mkdir(join(root, 'bin'));
    await mkdir(join(root, 'etc/systemd/system/multi-user.target.wants'), { recursive: true });
    await symlink('/x', join(root, 'etc/systemd/system/multi-user.target.wants/cron.service'));
    await stub('systemctl', 'echo "$@" >> "$ROOT/systemctl"');
    path = process.env.PATH;
    process.env.PATH = `${root}/bin:${path}`;
    process.env.ROOT = root;
  });
  afterEach(async () => {
    process.env.PATH = path;
    delete process.env.ROOT;
    await rm(root, { recursive: true });
  });

  async function stub(name: string, script: string): Promise<void> {
    await writeFile(join(root, 'bin', name), `#!/bin/sh\n${script}\n`);
    await chmod(join(root, 'bin', name), 0o755);
  }

  const policyPath = () => join(root, 'policy-rc.d');
  const read = (name: string) => readFile(join(root, name), 'utf8').catch(() => undefined);
  const system = () => ({ root, policyPath: policyPath() });
  const lines: string[] = [];
  const report = (line: string) => void lines.push(line);

  test('are installed without removing others, and without starting services now or at boot', async () => {
    await stub(
      'apt-get',
      `echo "$@" > "$ROOT/apt"; sh "$ROOT/policy-rc.d"; echo $? >> "$ROOT/apt"
     ln -s /x "$ROOT/etc/systemd/system/multi-user.target.wants/redis-server.service"
     mkdir "$ROOT/etc/systemd/system/sockets.target.wants"; ln -s /x "$ROOT/etc/systemd/system/sockets.target.wants/docker.socket"`,
    );
    await installPackages(['redis-server', 'docker.io'], report, system());
    expect((await read('apt'))?.split('\n')).toEqual([
      'install -y -qq --no-remove --no-install-recommends -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 redis-server docker.io',
      '101',
      '',
    ]);
    expect(await read('policy-rc.d')).toBeUndefined();
    expect(await read('systemctl')).toBe('disable --quiet docker.socket redis-server.service\n');
  });

  test('are not installed if apt would remove another package, which the proposed fix keeps too', async () => {
    const words = 'E: Packages need to be removed but remove is disabled.';
    await stub('apt-get', `echo run >> "$ROOT/apt"; echo '${words}' >&2; exit 100`);
    await expect(installPackages(['docker.io'], report, system())).rejects.toThrow(
      /^apt-get would remove other packages to install docker\.io, and set-up removes none\.\n {2}Fix: read what apt-get install -s /,
    );
    expect(await read('apt')).toBe('run\n');
    expect(await read('policy-rc.d')).toBeUndefined();
    expect(await read('systemctl')).toBeUndefined();
  });

  test('do not change a policy-rc.d of the administrator', async () => {
    await stub('apt-get', '');
    await writeFile(policyPath(), '#!/bin/sh\nexit 0\n');
    await installPackages(['gcc'], report, system());
    expect(await read('policy-rc.d')).toBe('#!/bin/sh\nexit 0\n');
    await removeStalePolicy(policyPath());
    expect(await read('policy-rc.d')).toBe('#!/bin/sh\nexit 0\n');
  });

  /** Installs in another process. Its apt-get reports its start and lasts until the file `go` exists. */
  async function installElsewhere() {
    await stub(
      'apt-get',
      'echo on > "$ROOT/on"; while ! [ -e "$ROOT/go" ]; do sleep 0.05; done; echo ended > "$ROOT/apt"',
    );
    const module = JSON.stringify(join(import.meta.dirname, 'debian-packages.ts'));
    const script = `
    const { installPackages } = await import(${module});
    const { root, policyPath } = ${JSON.stringify(system())};
    process.stdout.write('begins\\n');
    await installPackages(['gcc'], () => {}, { root, policyPath });
    process.stdout.write('went on');`;
    const flags = ['--conditions=@shellfleet/source', '--no-warnings', '--input-type=module', '-e'];
    const child = spawn(process.execPath, [...flags, script], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (data: Buffer) => {
      output += data.toString();
    });
    await expect.poll(() => read('on'), { timeout: 20_000 }).toBe('on\n');
    expect(await read('policy-rc.d')).toContain("shellfleet's set-up");
    const group = (signal: NodeJS.Signals) => process.kill(-(child.pid ?? 0), signal);
    return { child, group, output: () => output };
  }

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    '%s waits until apt has ended, and then ends set-up',
    async (signal) => {
      const { child, group, output } = await installElsewhere();
      group(signal);
      group(signal);
      await writeFile(join(root, 'go'), '');
      expect(await once(child, 'exit')).toEqual([null, signal]);
      expect({ apt: await read('apt'), policy: await read('policy-rc.d'), output: output() }).toEqual({
        apt: 'ended\n',
        policy: undefined,
        output: 'begins\n',
      });
    },
  );

  test('leave no policy file of a killed installation, but that of a running one', async () => {
    const { child } = await installElsewhere();
    await removeStalePolicy(policyPath());
    expect(await readdir(root)).toContain('policy-rc.d');
    child.kill('SIGKILL');
    await once(child, 'exit');
    await writeFile(join(root, 'go'), '');
    await removeStalePolicy(policyPath());
    expect(await readdir(root)).not.toContain('policy-rc.d');
    await expect.poll(() => read('apt')).toBe('ended\n');
  });
});
