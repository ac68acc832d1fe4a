import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Result, RunOptions, Session, SessionSpec } from '@shellfleet/client';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { filesOf, isRoot } from '../support/host-leftovers.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Commands that leave the sandbox of their session. The operator's rules allow them without a question; the tests of
// approvals cover the questions.

const preload = new URL('../fixtures/resolves-names.ts', import.meta.url).href;
const PROGRAMS = ['sh', 'bash', 'ls', 'touch', 'cat', 'greet', 'll', 'cd', 'export', 'sleep', 'echo'];
const escalate = { justification: 'the test needs it' };

let directory: string;
let server: Server;
let stack: TestFleet;
let docker: Docker;

beforeAll(async () => {
  docker = new Docker({ socketPath: inject('dockerHost').replace('unix://', '') });
  directory = await realpath(await mkdtemp(join(tmpdir(), 'sf-outside-')));
  await chmod(directory, 0o755);
  await mkdir(join(directory, 'ws'));
  server = createServer((_request, response) => response.end('reached\n'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const sections = {
    rules: [join(directory, 'rules.yaml')],
    allow: { hosts: [`server.test:${port}`], privateAddresses: ['127.0.0.1/32'], unchecked: ['variables'] },
  };
  // JSON is valid YAML.
  await writeFile(
    join(directory, 'rules.yaml'),
    JSON.stringify({ rules: [{ decision: 'allow', pattern: [PROGRAMS] }] }),
  );
  const configOf = async (name: string, escalation: object) => {
    await writeFile(join(directory, name), JSON.stringify({ ...sections, escalation }));
    return { SHELLFLEET_CONFIG: join(directory, name) };
  };
  stack = await startFleet({
    workers: isRoot ? 2 : 1,
    // No session of this file is closed before its end.
    slots: 20,
    env: {
      SHELLFLEET_WORKSPACES: join(directory, 'ws'),
      SHELLFLEET_HOST_USER: '4726',
      NODE_OPTIONS: `--import ${preload}`,
      SHELLFLEET_TEST_NAMES: JSON.stringify({ 'server.test': [['127.0.0.1']] }),
    },
    envs: [
      await configOf('docker.yaml', { mode: 'workspace-write', network: 'full' }),
      {
        ...(await configOf('bubblewrap.yaml', { mode: 'workspace-write', network: 'limited' })),
        SHELLFLEET_POLICIES: 'bubblewrap',
      },
    ],
  });
}, 60_000);

afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  server?.close();
  await rm(directory, { recursive: true, force: true });
});

let sessions = 0;
/** State of the session's own shell in the Result of a command that left the sandbox. */
const KEPT = { state: 'kept', epoch: 1 };
interface Opened {
  session: Session;
  /** Path of the workspace on the host. */
  workspace: string;
  outside(script: string, options?: RunOptions): Promise<Result>;
}
async function open(spec: SessionSpec): Promise<Opened> {
  const id = `outside-${++sessions}`;
  const workspace = join(directory, 'ws', id);
  await mkdir(workspace);
  await chmod(workspace, 0o777);
  const session = await stack.fleet.session(id, { workspace, ...spec });
  return { session, workspace, outside: (script, options) => session.run(script, { escalate, ...options }) };
}

/** Returns the parts of all sandboxes of this fleet: containers, and files of the state directory. */
async function sandboxes(): Promise<string[]> {
  const filters = { label: [`shellfleet.namespace=${stack.namespace}`] };
  const containers = await docker.listContainers({ all: true, filters });
  return [...containers.map(({ Id }) => Id), ...(await filesOf(stack.stateDirectory))].sort();
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

/**
 * Sets everything in a shell that could follow a command out of the sandbox. It uses builtins alone, since one of the
 * images has no program but its shell.
 */
const SET_UP = `shopt -s expand_aliases 2>/dev/null
cd sub
export A="x y'z" PATH=/workspace/evil:$PATH BASH_ENV=~/.bashrc ENV=~/.shrc LD_LIBRARY_PATH=/workspace/evil CDPATH=/
NOT_EXPORTED=1
greet() { echo FUNCTION; }
alias ll='echo ALIAS'
trap 'echo TRAPPED' EXIT
set -f
sleep 1000 2>/dev/null &
greet`;
/** Script of a command that leaves the sandbox. It may contain anything, because the rules allow sh. */
const PROBE = `pwd
read -r line <file
echo "$line $A $HOME \${NOT_EXPORTED-}"
echo "\${BASH_ENV-}\${ENV-}\${LD_LIBRARY_PATH-}\${CDPATH-}"
case $PATH in *workspace*) echo "$PATH" ;; esac
for process in /proc/[0-9]*; do
  read -r name <$process/comm
  case $name in sleep) echo "$process" ;; esac
done
evil`;
const FILES = {
  'probe.sh': PROBE,
  'sub/file': 'data\n',
  'evil/evil': '#!/bin/sh\necho EVIL\n',
  ...Object.fromEntries(['.bashrc', '.profile', '.bash_profile', '.shrc'].map((name) => [name, 'echo SOURCED\n'])),
};
const REPORTED = '/workspace/sub\ndata  /workspace \n\n';

const shells: [string, () => SessionSpec][] = [
  ['bash in a container', () => ({})],
  ['dash in a container', () => ({ image: inject('testImages').dashOnly })],
  ['ash in a container', () => ({ image: inject('testImages').busybox })],
  ...(isRoot ? [['bash behind bubblewrap', () => ({ policy: 'bubblewrap' })] as [string, () => SessionSpec]] : []),
];

describe('a command that leaves its sandbox', () => {
  // S3-25
  test.concurrent.each(shells)(
    'takes along files and directory, and nothing else of its shell: %s',
    async (_, spec) => {
      const { session, workspace, outside } = await open(spec());
      for (const directory of ['sub', 'evil']) await mkdir(join(workspace, directory));
      for (const [name, text] of Object.entries(FILES)) await writeFile(join(workspace, name), text, { mode: 0o755 });
      expect(await session.run(SET_UP)).toMatchObject({
        outcome: 'success',
        stdout: expect.stringMatching(/FUNCTION\n$/),
      });
      const left = await outside('sh ../probe.sh; echo *; greet; ll');
      expect(left).toMatchObject({ exitCode: 127, stdout: `${REPORTED}file\n`, outside: true, shell: KEPT });
      expect(left.stderr).toMatch(/evil: .*not found\n.*greet: .*not found\n.*ll: .*not found\n$/);
      expect(await outside('cd /')).toMatchObject({ outcome: 'success', shell: KEPT });
      // The shell in the sandbox is unchanged, `$?` included.
      await session.run('evil; false');
      const kept = await session.run('echo "$? $PWD $A $NOT_EXPORTED"; greet; ll; echo *');
      expect(kept).toMatchObject({ stdout: expect.stringContaining("1 /workspace/sub x y'z 1\nFUNCTION\nALIAS\n*\n") });
    },
  );

  const PRINTS_ENVIRONMENT = 'while read -r -d "" v; do printf "%s\\0" "$v"; done </proc/self/environ';
  /** Variables that each shell and each container sets for itself. */
  const OF_SHELLS = ['_', 'SHLVL', 'PWD', 'OLDPWD', 'HOSTNAME'];

  function environmentOf(result: Result): Record<string, string> {
    const pairs = result.stdout.split('\0').slice(0, -1);
    const named = pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const);
    return Object.fromEntries(named.filter(([name]) => !OF_SHELLS.includes(name)));
  }

  // fault 104
  test('has the variables of spec, secrets and command, even if random names were exported', async () => {
    const given = { env: { OF_SPEC: 'spec', BOTH: 'spec' }, secrets: { OF_SECRETS: 'correct-horse' } };
    const { session, workspace, outside } = await open(given);
    await writeFile(join(workspace, 'environment.sh'), PRINTS_ENVIRONMENT);
    const plain = await open({});
    await writeFile(join(plain.workspace, 'environment.sh'), PRINTS_ENVIRONMENT);
    const fixed = environmentOf(await plain.session.run('bash environment.sh'));
    const known = [
      'TAR_OPTIONS',
      'NODE_OPTIONS',
      'PYTHONPATH',
      'GIT_SSH_COMMAND',
      'LD_LIBRARY_PATH',
      'MAKEFLAGS',
      'HOME',
    ];
    const random = Array.from({ length: 1_000 }, () => `V_${randomBytes(6).toString('hex')}`);
    const exports = [...known, ...random].map((name) => `export ${name}=/workspace/evil`).join('\n');
    await writeFile(join(workspace, 'exports.sh'), `${exports}\nexport OF_SPEC=changed\n`);
    expect(await session.run('. ./exports.sh; env | grep -c /workspace/evil')).toMatchObject({ stdout: '1007\n' });
    const left = await outside('bash environment.sh', { env: { OF_COMMAND: 'command', BOTH: 'command' } });
    const own = { OF_SPEC: 'spec', BOTH: 'command', OF_SECRETS: '[REDACTED_SECRET]', OF_COMMAND: 'command' };
    expect(environmentOf(left)).toEqual({ ...fixed, ...own });
  });

  test('ends with a reason and runs nothing if it cannot leave the sandbox', async () => {
    const { session, workspace, outside } = await open({});
    const refused = (code: string, reason: string) => ({
      outcome: 'error',
      error: { code, message: expect.stringContaining(reason) },
      shell: KEPT,
    });
    await session.run('mkdir /tmp/own && cd /tmp/own && true');
    expect(await outside('touch ran')).toMatchObject(refused('COMMAND_INVALID', '/tmp/own does not exist outside'));
    // The rules can decide about this command, but it may not leave the sandbox with these variables.
    const unsafe = { cwd: '/workspace', env: { CDPATH: '/workspace', A: '1' } };
    expect(await outside('touch ran', unsafe)).toMatchObject(refused('SANDBOX_UNAVAILABLE', 'CDPATH would'));
    await session.run('mkdir /workspace/gone; cd /workspace/gone; rmdir /workspace/gone');
    expect(await outside('touch ran')).toMatchObject(refused('SANDBOX_UNAVAILABLE', 'is not there any more'));
    const own = await open({ env: { CDPATH: '/workspace' } });
    const ofSpec = await own.outside('touch ran');
    expect(ofSpec).toMatchObject({ outcome: 'error', error: { code: 'SANDBOX_UNAVAILABLE' } });
    expect(ofSpec.outcome === 'error' && ofSpec.error.message).toContain('its spec sets CDPATH');
    expect(await exists(join(workspace, 'ran'))).toBe(false);
    const alone = await stack.fleet.session('outside-alone');
    const left = await alone.run('touch ran', { escalate });
    expect(left).toMatchObject({ outcome: 'error', error: { code: 'SANDBOX_UNAVAILABLE' } });
    expect(left.outcome === 'error' && left.error.message).toContain('without a workspace');
  });
});

const policies: ('docker' | 'bubblewrap')[] = isRoot ? ['docker', 'bubblewrap'] : ['docker'];

describe.each(policies)('a command that leaves its sandbox under %s', (policy) => {
  test('reaches files that its session may not, and leaves no sandbox behind', async () => {
    const { session, workspace, outside } = await open({ policy, sandbox: { mode: 'read-only' } });
    const name = `http://server.test:${(server.address() as AddressInfo).port}/`;
    await writeFile(
      join(workspace, 'reach.py'),
      `import urllib.request\nprint(urllib.request.urlopen('${name}').read())`,
    );
    await writeFile(join(workspace, 'routes.sh'), 'wc -l </proc/net/route');
    const reach = policy === 'docker' ? 'sh routes.sh' : 'sh -c "python3 reach.py"';
    const inside = await session.run(`touch denied; ${reach}`);
    expect(inside).toMatchObject({ stderr: expect.stringMatching(/denied.*: Read-only file system/) });
    const before = await sandboxes();
    const left = await outside(`touch allowed && ${reach}`);
    // A container with a network has routes. A sandbox of bubblewrap reaches the name through the proxy.
    expect(left).toMatchObject({ outcome: 'success', stdout: policy === 'docker' ? '3\n' : "b'reached\\n'\n" });
    expect(inside.stdout).not.toBe(left.stdout);
    expect(await sandboxes()).toEqual(before);
    expect(await session.run('ls')).toMatchObject({ stdout: expect.stringMatching(/^allowed\n/) });
  });

  test('is stopped, cancelled, fed and redacted as usual, with its background processes', async () => {
    const { session, workspace, outside } = await open({ policy, secrets: { TOKEN: 'correct-horse-battery' } });
    await writeFile(join(workspace, 'tell.sh'), 'sleep 1000 &\necho "$TOKEN $OWN"');
    await writeFile(join(workspace, 'run.sh'), 'echo >running; sleep 1000');
    await session.run('true');
    const before = await sandboxes();
    expect(await outside('sleep 1000', { timeoutMs: 500 })).toMatchObject({ outcome: 'timeout', reason: 'wall' });
    expect(await outside('cat', { stdin: 'fed\n' })).toMatchObject({ outcome: 'success', stdout: 'fed\n' });
    const told = await outside('sh tell.sh', { env: { OWN: 'own' } });
    expect(told).toMatchObject({ outcome: 'success', stdout: '[REDACTED_SECRET] own\n' });
    const cancelled = await session.submit('sh run.sh', { escalate });
    await until(() => exists(join(workspace, 'running')), Boolean);
    await cancelled.cancel();
    expect(await cancelled.result()).toMatchObject({ outcome: 'cancellation', shell: KEPT });
    expect(await sandboxes()).toEqual(before);
  });

  test('does not run in a directory that took the place of its workspace', async () => {
    const { session, workspace, outside } = await open({ policy });
    await session.run('true');
    await rename(workspace, `${workspace}-before`);
    await mkdir(workspace);
    const before = await sandboxes();
    expect(await outside('touch here')).toMatchObject({
      outcome: 'error',
      error: { code: 'SANDBOX_UNAVAILABLE', message: expect.stringContaining('was replaced') },
      shell: KEPT,
    });
    expect(await exists(join(workspace, 'here'))).toBe(false);
    expect(await sandboxes()).toEqual(before);
    expect(await session.run('echo on')).toMatchObject({ stdout: 'on\n' });
  });

  test('is lost with its worker and not repeated; the next worker removes its sandbox', async () => {
    const { session, workspace, outside } = await open({ policy });
    await session.run('A=kept');
    const before = await sandboxes();
    await writeFile(join(workspace, 'run.sh'), 'echo ran >>runs; sleep 1000');
    const lost = outside('sh run.sh');
    // A test that fails before it awaits `lost` would otherwise leave an unhandled rejection.
    lost.catch(() => {});
    await until(() => exists(join(workspace, 'runs')), Boolean);
    expect((await sandboxes()).length).toBeGreaterThan(before.length);
    const worker = stack.workers[policies.indexOf(policy)];
    await worker?.kill();
    await worker?.start();
    expect(await lost).toMatchObject({ outcome: 'lost', shell: KEPT });
    expect(await session.run('echo "$A"; cat runs')).toMatchObject({ stdout: 'kept\nran\n' });
    await expect.poll(sandboxes, { timeout: 20_000 }).toEqual(before);
  });
});
