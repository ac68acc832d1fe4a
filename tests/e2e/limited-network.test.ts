import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Fleet, Session, SessionSpec } from '@shellfleet/client';
import { SESSION_IMAGES } from '@shellfleet/policy';
import { ensureFullSessionImage, findDocker } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { isRoot } from '../support/host-leftovers.ts';
import { type PackageRegistry, startPackageRegistry } from '../support/package-registry.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// Sessions with the networks `limited` and `full` on one host, in containers and behind bubblewrap. This process is the
// registry that they reach, under a name that only the worker resolves.

const preload = new URL('../fixtures/resolves-names.ts', import.meta.url).href;
const names = {
  'registry.test': [['127.0.0.1']],
  'inside.test': [['127.0.0.2']],
  'metadata.test': [['169.254.169.254']],
  // The proxy allows the first address. A client that resolved the name again would connect to the second one.
  'rebinding.test': [['127.0.0.1'], ['127.0.0.2']],
};

let directory: string;
let image: string;
let registry: PackageRegistry;
let stack: TestFleet;
let fleet: Fleet;

beforeAll(async () => {
  const engine = await findDocker({ DOCKER_HOST: inject('dockerHost') });
  const machine = {
    engine: { ...engine!, startedHere: false },
    sessionImage: inject('sessionImage'),
    imageNames: SESSION_IMAGES,
  };
  image = await ensureFullSessionImage(machine, process.env, (line) => console.error(line));
  registry = await startPackageRegistry('registry.test');
  directory = await mkdtemp(join(tmpdir(), 'sf-limited-'));
  const allow = {
    modes: ['read-only', 'workspace-write'],
    networks: ['restricted', 'limited', 'full'],
    hosts: [`*.test:${registry.port}`, '*.test'],
    privateAddresses: ['127.0.0.1/32'],
  };
  // JSON is valid YAML.
  await writeFile(join(directory, 'config.yaml'), JSON.stringify({ allow }));
  stack = await startFleet({
    slots: 20,
    env: {
      SHELLFLEET_POLICIES: isRoot ? 'docker,bubblewrap' : 'docker',
      SHELLFLEET_HOST_USER: '4723',
      NODE_OPTIONS: `--import ${preload}`,
      SHELLFLEET_TEST_NAMES: JSON.stringify(names),
      SHELLFLEET_CONFIG: join(directory, 'config.yaml'),
    },
  });
  fleet = stack.fleet;
}, 600_000);

afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await registry?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

let count = 0;
const open = (sandbox: SessionSpec['sandbox'], more: SessionSpec = {}): Promise<Session> =>
  fleet.session(`limited-${++count}`, { image, sandbox, ...more });
/** Returns the audit of the only host. */
async function audited(): Promise<string> {
  const names = await readdir(stack.stateDirectory, { recursive: true });
  const records = names.filter((name) => name.endsWith('.jsonl')).map((name) => join(stack.stateDirectory, name));
  return (await Promise.all(records.map((path) => readFile(path, 'utf8')))).join('');
}
const openInEnclosure = (sandbox: SessionSpec['sandbox']): Promise<Session> =>
  fleet.session(`limited-${++count}`, { policy: 'bubblewrap', sandbox });

/** Returns the spec of a session that may reach the registry. */
const limited = () => ({
  network: 'limited' as const,
  allowedHosts: [
    ...['registry', 'rebinding', 'inside'].map((name) => `${name}.test:${registry.port}`),
    'registry.test',
    'metadata.test',
  ],
});

describe('network limited in a container', () => {
  let session: Session;

  beforeAll(async () => {
    session = await open(limited());
  });

  test('lets pip install from an allowed registry without settings', async () => {
    const url = `http://registry.test:${registry.port}/simple`;
    const result = await session.run(
      `pip install -q --disable-pip-version-check --index-url ${url} --trusted-host registry.test -t /tmp/py greeting && PYTHONPATH=/tmp/py python3 -c 'import greeting; print(greeting.TEXT)'`,
    );
    expect(result).toMatchObject({ outcome: 'success', stdout: 'hello from a wheel\n' });
  });

  test('lets npm install from an allowed registry without settings', async () => {
    const url = `http://registry.test:${registry.port}/`;
    const result = await session.run(
      `mkdir -p /tmp/js && cd /tmp/js && npm install --silent --no-audit --no-fund --registry ${url} greeting >&2 && node -p 'require("greeting")'`,
    );
    expect(result).toMatchObject({ outcome: 'success', stdout: 'hello from a tarball\n' });
  });

  test('reaches nothing but through the proxy, which refuses each address with its reason', async () => {
    const reasons: Record<string, string> = {
      'http://elsewhere.example/': "it is not among the session's sandbox.allowedHosts",
      [`http://127.0.0.1:${registry.port}/`]: 'an address is not let through: name the host',
      [`http://[::1]:${registry.port}/`]: 'an address is not let through: name the host',
      [`http://inside.test:${registry.port}/`]:
        'it is at a private address, and the operator of the host does not list that',
      'http://metadata.test/': 'it is at a private address, and the operator of the host does not list that',
      'http://registry.test:22/': "it is not among the session's sandbox.allowedHosts",
    };
    const script = Object.keys(reasons)
      .map((url) => `curl -s -g --noproxy '' -w '%{http_code}\\n' '${url}'`)
      .join('\n');
    const lines = Object.entries(reasons).flatMap(([url, reason]) => [
      `Shellfleet does not let ${new URL(url).host} through: ${reason}.`,
      '403',
    ]);
    expect((await session.run(script)).stdout).toBe(`${lines.join('\n')}\n`);
    const tunnel = await session.run(`curl -s -S -p http://registry.test:22/; echo $?`);
    expect(tunnel).toMatchObject({ stdout: '56\n', stderr: expect.stringContaining('403') });
    const direct = await session.run(
      `curl -s --noproxy '*' --max-time 5 http://198.51.100.1/; echo $?; curl -s --noproxy '*' http://registry.test:${registry.port}/; echo $?`,
    );
    expect(direct.stdout).toMatch(/^7\n6\n$/);
    // The audit of the host has each refusal with its reason.
    await expect
      .poll(audited)
      .toContain(
        `"host":"elsewhere.example","port":80,"reason":"it is not among the session's sandbox.allowedHosts","count":1`,
      );
  });

  test('resolves a name once for a connection, so a changed address has no effect', async () => {
    const url = `http://rebinding.test:${registry.port}/`;
    const { stdout } = await session.run(`curl -s ${url}; curl -s ${url}`);
    expect(stdout).toBe(
      `the registry\nShellfleet does not let rebinding.test:${registry.port} through: it is at a private address, and the operator of the host does not list that.\n`,
    );
  });

  test('closes connections with their command; background processes are offline until the next one', () =>
    endsWithItsCommand(session));

  test('lets a command ask for less network than its session has, but not for more', async () => {
    const url = `http://registry.test:${registry.port}/`;
    expect((await session.run(`curl -s ${url}`, { network: 'restricted' })).stdout).toBe(
      `Shellfleet does not let registry.test:${registry.port} through: the command that runs has no network.\n`,
    );
    expect((await session.run(`curl -s ${url}`, { network: 'limited' })).stdout).toBe('the registry\n');
    const closed = await open({ network: 'restricted' });
    expect(await closed.run('true', { network: 'limited' })).toMatchObject({
      outcome: 'error',
      error: { code: 'SANDBOX_UNAVAILABLE', context: { issues: [{ path: 'network' }] } },
    });
    expect(await closed.run('true', { network: 'restricted' })).toMatchObject({ outcome: 'success' });
  });

  test('gives startup commands the network of their session', async () => {
    const own = await open(
      { network: 'limited', allowedHosts: [`registry.test:${registry.port}`] },
      { startupCommands: [`curl -sf -o /tmp/page http://registry.test:${registry.port}/`] },
    );
    expect((await own.run('cat /tmp/page')).stdout).toBe('the registry\n');
  });

  test('replaces a forwarder that the session kills, and hides it from its processes', async () => {
    const url = `http://registry.test:${registry.port}/`;
    const { stdout } = await session.run(
      `for p in /proc/[0-9]*; do pid=\${p#/proc/}; [ "$pid" -ne 1 ] && [ "$pid" -ne $$ ] && [ "$(cut -d' ' -f4 $p/stat)" = 1 ] && kill -9 $pid; done; until curl -sf ${url}; do sleep 0.05; done`,
    );
    expect(stdout).toBe('the registry\n');
    expect((await session.info()).background).toEqual([]);
  });
});

describe.runIf(isRoot)('network limited behind bubblewrap', () => {
  let session: Session;

  beforeAll(async () => {
    session = await openInEnclosure(limited());
  });

  test('reaches an allowed name through the proxy without settings, and nothing otherwise', async () => {
    const url = `http://registry.test:${registry.port}/`;
    const { stdout } = await session.run(`curl -s ${url}; curl -s http://metadata.test/
      python3 -c 'import urllib.request as r; print(r.urlopen("${url}").read().decode(), end="")'
      curl -s http://elsewhere.example/
      curl -s --noproxy '*' --max-time 5 http://198.51.100.1/; echo $?; curl -s --noproxy '*' http://127.0.0.1:${registry.port}/; echo $?
      curl -s --noproxy '*' ${url}; echo $?; tail -n +2 /proc/net/route | wc -l`);
    expect(stdout).toBe(
      [
        'the registry',
        'Shellfleet does not let metadata.test through: it is at a private address, and the operator of the host does not list that.',
        'the registry',
        "Shellfleet does not let elsewhere.example through: it is not among the session's sandbox.allowedHosts.",
        ...['7', '7', '6', '0', ''],
      ].join('\n'),
    );
  });

  test('closes connections with their command; background processes are offline until the next one', () =>
    endsWithItsCommand(session));

  test('lets a command do without network, and serves read-only sessions as well', async () => {
    const url = `http://registry.test:${registry.port}/`;
    expect((await session.run(`curl -s ${url}`, { network: 'restricted' })).stdout).toContain(
      'the command that runs has no network',
    );
    const reads = await openInEnclosure({ ...limited(), mode: 'read-only' });
    expect((await reads.run(`curl -s ${url}; touch f`)).output).toMatch(/^the registry\n.*Read-only file system\n$/);
  });

  test('gives a session with `network: full` the host’s network', async () => {
    const full = await openInEnclosure({ network: 'full' });
    expect((await full.run(`curl -s http://127.0.0.1:${registry.port}/; env | grep -ci proxy`)).stdout).toBe(
      'the registry\n0\n',
    );
  });
});

async function endsWithItsCommand(session: Session): Promise<void> {
  const url = `http://registry.test:${registry.port}`;
  await session.run(`rm -f /tmp/got /tmp/seen
    (curl -sN ${url}/forever > /tmp/got; echo "ended $?" > /tmp/seen; until curl -sf -o /dev/null ${url}/; do sleep 0.05; done; echo again >> /tmp/seen) > /dev/null 2>&1 &
    until grep -q begun /tmp/got; do sleep 0.05; done`);
  // File operations are no commands, so no command runs during this poll.
  await expect.poll(() => session.files.readText('/tmp/seen').catch(() => '')).toMatch(/^ended (?:18|56)\n$/);
  await session.run('until grep -q again /tmp/seen; do sleep 0.05; done');
}

describe('network full in a container', () => {
  test('keeps two sessions apart, and cannot be less for one command', async () => {
    const [one, other] = await Promise.all([open({ network: 'full' }), open({ network: 'full' })]);
    const serve = await one.run(
      `python3 -m http.server 8123 --bind 0.0.0.0 > /dev/null 2>&1 & until curl -s -o /dev/null http://127.0.0.1:8123/; do sleep 0.05; done; hostname -I`,
    );
    const address = serve.stdout.trim();
    expect(address).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    expect(await one.run(`curl -s -o /dev/null http://${address}:8123/`)).toMatchObject({ outcome: 'success' });
    expect((await other.run(`curl -s --max-time 3 http://${address}:8123/; echo $?`)).stdout).toMatch(/^(?:7|28)\n$/);
    expect((await other.run('tail -n +2 /proc/net/route | wc -l')).stdout).not.toBe('0\n');
    expect(await one.run('true', { network: 'restricted' })).toMatchObject({
      outcome: 'error',
      error: { code: 'SANDBOX_UNAVAILABLE', context: { issues: [{ path: 'network' }] } },
    });
  });
});

describe('network limited', () => {
  test('is served again when a killed worker comes back and adopts its sessions', async () => {
    const url = `http://registry.test:${registry.port}/`;
    const sessions = [await open(limited()), ...(isRoot ? [await openInEnclosure(limited())] : [])];
    const running = await Promise.all(
      sessions.map((session) =>
        session.submit(`touch /tmp/runs; until curl -sf -o /dev/null ${url}after; do sleep 0.1; done`),
      ),
    );
    for (const session of sessions)
      await expect
        .poll(() => session.files.stat('/tmp/runs').then(Boolean, () => false), { timeout: 20_000 })
        .toBe(true);
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    await Promise.all(running.map((command) => command.cancel()));
    await Promise.all(running.map((command) => command.result()));
    for (const session of sessions)
      expect(await session.run(`curl -s ${url}`)).toMatchObject({
        stdout: 'the registry\n',
        shell: { state: 'kept' },
      });
  });
});
