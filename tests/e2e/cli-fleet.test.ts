import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fleetKeys, type HostInfo } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { keyspaceOf } from '../support/keyspace.ts';
import { connectTestRedis } from '../support/mailbox-session.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// The verbs about sessions, hosts, files and batches, and wrong usage.

let stack: TestFleet;
let cli: FleetCli;
let directory: string;
beforeAll(async () => {
  stack = await startFleet({ slots: 3 });
  cli = new FleetCli(stack);
  directory = await mkdtemp(join(tmpdir(), 'sf-cli-'));
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function sessionIds(): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of stack.fleet.sessions()) ids.push(id);
  return ids.sort();
}

const jsonLines = (text: string) => text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));

describe('the fleet on the command line', () => {
  test('is shown by ps, queue and hosts ls, as a table and as JSON', async () => {
    const ids = ['open-1', 'open-2', 'open-3'];
    const sessions = await Promise.all(ids.map((id) => stack.fleet.session(id)));
    await Promise.all(sessions.map((session) => session.run('true')));
    const { stdout } = await cli.text(['exec', '-d', 'waits', '--', 'echo went']);
    const ps = jsonLines((await cli.text(['ps', '--json'])).stdout);
    expect(Object.fromEntries(ps.map(({ id, state, hostId, position }) => [id, { state, hostId, position }]))).toEqual({
      ...Object.fromEntries(ids.map((id) => [id, { state: 'ready', hostId: 'h1' }])),
      waits: { state: 'queued', hostId: null, position: 1 },
    });
    const table = (await cli.text(['ps'])).stdout.split('\n');
    expect(table[0]).toMatch(/^SESSION +STATE +HOST +QUEUED +RUNNING +LAST ACTIVE +WAITS BECAUSE$/);
    expect(table.filter((line) => /^waits +queued #1 +- +1 +- /.test(line))).toHaveLength(1);
    expect(jsonLines((await cli.text(['queue', '--json'])).stdout)).toMatchObject([{ id: 'waits', queuedCommands: 1 }]);
    expect((await cli.text(['queue'])).stderr).toBe('shellfleet: 1 sessions wait for a slot, and 1 commands wait.\n');
    await until(
      () => stack.fleet.hosts(),
      ([host]) => host?.free === 0,
    );
    expect(jsonLines((await cli.text(['hosts', 'ls', '--json'])).stdout)).toMatchObject([
      { id: 'h1', slots: 3, free: 0 },
    ]);
    expect((await cli.text(['hosts', 'ls'])).stdout).toMatch(/^HOST +STATE .*\nh1 +up +0\/3 +docker /);
    expect(await cli.text(['close', 'open-1'])).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'shellfleet: open-1 is closed.\n',
    });
    expect((await cli.text(['wait', stdout.trim()])).exitCode).toBe(0);
    expect((await cli.text(['close', 'open-1'])).stderr).toBe('shellfleet: open-1 was not open.\n');
    await Promise.all([...ids, 'waits'].map(async (id) => (await stack.fleet.session(id)).close()));
  });

  test('takes its configuration from config apply, and keeps the last valid one', async () => {
    const file = join(directory, 'fleet.yaml');
    await writeFile(file, 'tenants:\n  - { name: builds, weight: 0 }\n');
    const wrong = `shellfleet: ${file}, line 2: tenants[0].weight must be more than 0`;
    for (const verb of ['check', 'apply'])
      expect(await cli.text(['config', verb, file])).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining(wrong),
      });
    await writeFile(file, '# Cut off.\n');
    expect((await cli.text(['config', 'apply', file])).stderr).toContain(`${file} is empty. Write {} to give every`);
    expect((await cli.text(['config', 'show'])).stderr).toContain('No configuration was applied');
    await writeFile(file, 'tenants:\n  - { name: builds, weight: 2 }\n  - { name: nightly, maxSessions: 40 }\n');
    expect((await cli.text(['config', 'apply', file, '--by', 'ada'])).stderr).toBe(
      'shellfleet: Revision 1 is applied: 2 tenants.\n',
    );
    const untilHost = (has: (host: HostInfo) => boolean) =>
      until(
        () => stack.fleet.hosts(),
        ([host]) => host !== undefined && has(host),
      );
    await untilHost(({ configuration }) => configuration === 1);
    const [shown] = jsonLines((await cli.text(['config', 'show', '--json'])).stdout);
    const tenants = [
      { name: 'builds', weight: 2 },
      { name: 'nightly', weight: 1, maxSessions: 40 },
    ];
    expect(shown).toMatchObject({ revision: 1, appliedBy: 'ada', configuration: { tenants }, hostsBehind: [] });

    const { configuration } = fleetKeys(keyspaceOf(stack.namespace));
    await using server = await connectTestRedis();
    await server.redis.hset(configuration, { revision: 2, configuration: '{"tenants":[{}]}' });
    const [host] = await untilHost(({ warnings }) => warnings !== undefined);
    expect(host).toMatchObject({
      configuration: 1,
      warnings: [expect.stringMatching(/^Revision 2 .* revision 1 holds\.$/)],
    });
    expect(stack.workers[0]?.log).toContain('configuration.refused');
    expect(await cli.text(['config', 'show'])).toMatchObject({ exitCode: 2 });

    await server.redis.del(configuration);
    await untilHost(({ warnings = [] }) => warnings.some((warning) => warning.includes('is no longer in Redis')));
    expect((await cli.text(['config', 'show'])).stderr).toContain('h1 has not read it: it uses revision 1.');
    await server.redis.hset(configuration, { configuration: '{"tenants":[7,{"name":["x"]}]}' });
    expect((await cli.text(['config', 'apply', file])).stderr).toMatch(/Revision 1 is applied/);
    await untilHost(({ warnings }) => warnings === undefined);
  });

  test('starts nothing after a restart under a configuration that it cannot use, until it can', async () => {
    const file = join(directory, 'usable.yaml');
    await writeFile(file, 'tenants: []\n');
    await cli.text(['config', 'apply', file]);
    const kept = await stack.fleet.session('kept');
    await kept.run('n=1');
    const running = await kept.submit('sleep 2; echo $n');
    await until(
      () => kept.info(),
      ({ state }) => state === 'busy',
    );
    const { configuration } = fleetKeys(keyspaceOf(stack.namespace));
    await using server = await connectTestRedis();
    await stack.workers[0]?.stop('SIGTERM');
    await server.redis.hset(configuration, { configuration: '{"rules":[{}]}' });
    await stack.workers[0]?.start();
    const [host] = await until(
      () => stack.fleet.hosts(),
      ([found]) => found?.problems !== undefined,
    );
    const problem = /Revision \d+ of the fleet's configuration in Redis .*it takes no session\.$/;
    expect(host).toMatchObject({ configuration: 0, problems: [expect.stringMatching(problem)] });
    expect(stack.workers[0]?.log).toContain('configuration.refused');
    // What was adopted ends as usual. Nothing else is started.
    const next = await kept.submit('echo never');
    expect(await running.result()).toMatchObject({ outcome: 'success', stdout: '1\n' });
    expect(await next.result()).toMatchObject({ outcome: 'error', error: { code: 'RULES_INVALID' } });
    const fresh = await stack.fleet.session('fresh');
    const waits = await fresh.submit('echo went');
    expect((await fresh.info()).noHostReason).toMatch(/takes sessions now: Revision \d+ of the fleet's configuration/);
    await cli.text(['config', 'apply', file]);
    expect(await waits.result()).toMatchObject({ outcome: 'success', stdout: 'went\n' });
    expect(await kept.run('echo $n')).toMatchObject({ outcome: 'success', stdout: '1\n', shell: { state: 'kept' } });
    await Promise.all([kept.close(), fresh.close()]);
  });

  test('keeps a tenant to its quotas of sessions and waiting commands until they are raised', async () => {
    const file = join(directory, 'quota.yaml');
    await writeFile(file, 'tenants: [{ name: default, maxSessions: 1, maxQueued: 2 }]\n');
    await cli.text(['config', 'apply', file]);
    const [applied] = jsonLines((await cli.text(['config', 'show', '--json'])).stdout);
    await until(
      () => stack.fleet.hosts(),
      ([host]) => host?.configuration === applied.revision,
    );
    await cli.run(['exec', 'within', '--', 'echo within']);
    const waiting = await stack.fleet.session('beyond');
    const beyond = await waiting.submit('echo went');
    // Another tenant's session, which comes later, gets one of the free slots.
    const other = await cli.text(['exec', 'other', '--', 'echo went'], { env: { SHELLFLEET_TENANT: 'other' } });
    expect(other.stdout).toBe('went\n');
    const atQuota = { quota: 'maxSessions', used: 1, limit: 1 };
    expect(await waiting.info()).toMatchObject({ state: 'queued', position: 1, atQuota });
    const counted = await until(
      () => stack.fleet.tenants(),
      ([tenant]) => tenant?.waitingCommands === 1 && tenant.processorMs > 0 && tenant.outputBytes > 0,
    );
    expect(counted[0]).toEqual({
      ...{ name: 'default', weight: 1, maxSessions: 1, maxQueued: 2 },
      ...{ openSessions: 1, waitingSessions: 1, waitingCommands: 1, diskBytes: expect.any(Number) },
      ...{ processorMs: expect.any(Number), outputBytes: expect.any(Number) },
    });
    const { stdout: tenants } = await cli.text(['tenants', 'ls']);
    expect(tenants).toMatch(/^TENANT +WEIGHT +SESSIONS .*\ndefault +1 +1\/1 +1 +1\/2 +.* [\d.]+ s +/);
    const listed = jsonLines((await cli.text(['tenants', 'ls', '--json'])).stdout);
    expect(listed).toMatchObject([{ name: 'default' }, { name: 'other', openSessions: 1 }]);
    const second = await waiting.submit('echo second');
    await expect(waiting.submit('echo third')).rejects.toMatchObject({
      ...{ code: 'QUOTA_EXCEEDED', retryable: true },
      context: { quota: 'maxQueued', used: 2, limit: 2, retryAfterMs: expect.any(Number) },
    });
    await second.cancel();
    expect((await cli.text(['queue'])).stdout).toMatch(/^1 +beyond .* tenant has 1 of 1 sessions$/m);
    await writeFile(file, 'tenants: []\n');
    await cli.text(['config', 'apply', file]);
    const more = await Promise.all(['a', 'b', 'c'].map((word) => waiting.submit(`echo ${word}`)));
    const results = await Promise.all([beyond, ...more].map((command) => command.result()));
    expect(results.map(({ stdout }) => stdout)).toEqual(['went\n', 'a\n', 'b\n', 'c\n']);
    await cli.run(['close', 'within', 'beyond']);
    await cli.run(['close', 'other'], { env: { SHELLFLEET_TENANT: 'other' } });
  });

  test('denies what rules of the configuration forbid, and refuses rules with wrong examples', async () => {
    const file = join(directory, 'rules.yaml');
    const write = (example: string) =>
      writeFile(
        file,
        `rules: [{ pattern: [make], decision: forbid, justification: Not here., match: [${example}] }]\n`,
      );
    await write('cmake');
    for (const verb of ['check', 'apply']) {
      const { exitCode, stderr } = await cli.text(['config', verb, file]);
      expect([exitCode, stderr]).toEqual([expect.any(Number), expect.stringContaining('rules.0.match.0')]);
      expect(exitCode).not.toBe(0);
    }
    await write('make all');
    await cli.run(['exec', 'ruled', '--', 'true']);
    expect((await cli.text(['config', 'apply', file])).stderr).toContain('is applied: 0 tenants, 1 rule.');
    const denied = await until(
      () => cli.text(['exec', 'ruled', '--', 'make all']),
      ({ exitCode }) => exitCode === 126,
    );
    expect(denied.stderr).toContain('Not here.');
    expect((await cli.text(['exec', 'ruled', '--', 'echo went'])).stdout).toBe('went\n');
    await writeFile(file, '{}\n');
    await cli.text(['config', 'apply', file]);
    await until(
      () => cli.text(['exec', 'ruled', '--', 'make all']),
      ({ exitCode }) => exitCode !== 126,
    );
    await cli.run(['close', 'ruled']);
  });

  test('gives a session a fresh shell with restart, which fails for a missing session', async () => {
    await cli.run(['exec', 'again', '--', 'kept=no; echo f > f']);
    expect(await cli.text(['restart', 'again'])).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'shellfleet: again has a fresh shell.\n',
    });
    expect((await cli.text(['exec', 'again', '--', 'echo "[$kept]"; cat f'])).stdout).toBe('[]\nf\n');
    await cli.run(['close', 'again']);
    const { exitCode, stderr } = await cli.text(['restart', 'never-was']);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 125,
      stderr:
        'shellfleet: There is no session never-was. `shellfleet exec never-was -- true` opens it. (SESSION_NOT_FOUND)\n',
    });
  });

  test('copies files in both directions with cp, byte for byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 600_000 }, (_, index) => (index * 31) % 256));
    const local = join(directory, 'up.bin');
    await writeFile(local, bytes);
    await cli.run(['exec', 'copies', '--', 'true']);
    expect((await cli.text(['cp', local, 'copies:/workspace/deep/'])).exitCode).toBe(0);
    expect((await cli.text(['exec', 'copies', '--', 'wc -c < deep/up.bin'])).stdout).toBe('600000\n');
    expect((await cli.text(['cp', 'copies:/workspace/deep/up.bin', join(directory, 'down.bin')])).exitCode).toBe(0);
    expect((await readFile(join(directory, 'down.bin'))).equals(bytes)).toBe(true);
    const missing = await cli.text(['cp', 'copies:/none', directory]);
    expect({ exitCode: missing.exitCode, code: /\((\w+)\)\n$/.exec(missing.stderr)?.[1] }).toEqual({
      exitCode: 125,
      code: 'FILE_NOT_FOUND',
    });
    expect((await cli.text(['cp', 'a', 'b'])).exitCode).toBe(2);
    await cli.run(['close', 'copies']);
  });

  test('runs a batch of more tasks than slots, exits 1 for a failure, and resumes', async () => {
    const tasks = [
      ...Array.from({ length: 5 }, (_, index) => ({ id: `t${index}`, script: [`n=${index}`, 'echo $n'] })),
      { id: 'fails', script: ['exit 4', 'echo never'] },
      { id: 'reads', script: 'cat in/put', files: { '/workspace/in/put': join(directory, 'input') } },
    ];
    await writeFile(join(directory, 'input'), 'from this machine');
    await writeFile(join(directory, 'tasks.jsonl'), tasks.map((task) => JSON.stringify(task)).join('\n'));
    const out = join(directory, 'out.jsonl');
    const first = await cli.text(['batch', 'run', join(directory, 'tasks.jsonl'), '--out', out, '--concurrency', '5']);
    expect(first.exitCode).toBe(1);
    expect(first.stderr).toContain('6 passed, 1 did not, 0 had ended before.');
    const results = jsonLines(await readFile(out, 'utf8'));
    const outcomes = results.map(({ id, outcome, results: own }) => `${id} ${outcome} ${own.at(-1).stdout}`).sort();
    expect(outcomes).toEqual([
      'fails failure ',
      'reads success from this machine',
      ...Array.from({ length: 5 }, (_, index) => `t${index} success ${index}\n`),
    ]);
    const again = await cli.text(['batch', 'run', join(directory, 'tasks.jsonl'), '--out', out, '--resume']);
    expect(again).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('0 passed, 0 did not, 7 had ended before.'),
    });
    expect(jsonLines(await readFile(out, 'utf8'))).toEqual(results);
    await until(
      async () => (await stack.fleet.hosts())[0]?.free,
      (free) => free === 3,
    );
  });
});

describe('wrong usage of the command line', () => {
  test.each([
    ['no verb', [], 2],
    ['a verb that does not exist', ['frobnicate'], 2],
    ['another verb that does not exist', ['port'], 2],
    ['attach without a terminal', ['attach', 'x'], 2],
    ['an unknown flag', ['exec', 's', '--no-such-flag', '--', 'true'], 2],
    ['no script', ['exec', 's'], 2],
    ['an invalid time', ['exec', 's', '--timeout', 'soon', '--', 'true'], 2],
    ['a time of 0', ['exec', 's', '--timeout', '0', '--', 'true'], 2],
    ['an env without a name', ['exec', 's', '-e', '=x', '--', 'true'], 2],
    ['an invalid session id', ['exec', 'a b', '--', 'true'], 2],
    ['an invalid session of MCP', ['mcp', '--session', 'a b'], 2],
    ['an empty script', ['exec', 's', '--', ''], 2],
    ['an invalid image name', ['exec', 's', '--image', '--privileged', '--', 'true'], 2],
    ['an unknown policy', ['exec', 's', '--policy', 'podman', '--', 'true'], 2],
    ['an invalid command id', ['wait', 'nonsense'], 2],
    ['an unknown command id', ['wait', 'x.01ARZ3NDEKTSV4RRFFQ69G5FAV'], 125],
    ['an invalid cursor', ['logs', 'x', '--since', '$'], undefined],
    ['an unknown state', ['ps', '--state', 'happy'], 2],
    ['a missing batch file', ['batch', 'run', '/no/such', '--out', '/no/such/results'], 2],
    ['a directory as a batch file', ['batch', 'run', '/', '--out', '/no/such/results'], 2],
    ['a Redis URL of another protocol', ['--redis-url', 'http://x', 'ps'], 2],
    ['an invalid port', ['--redis-url', 'redis://127.0.0.1:99999', 'ps'], 2],
    ['an invalid namespace', ['--namespace', 'a:b', 'ps'], 2],
  ])('prints one line with the next step, and sets the exit code: %s', async (_what, args, exitCode) => {
    const before = await sessionIds();
    const run = await cli.text(args);
    expect(run.stdout).toBe('');
    if (exitCode !== undefined) expect(run.exitCode, run.stderr).toBe(exitCode);
    else expect([2, 125]).toContain(run.exitCode);
    if (args.length > 0) expect(run.stderr).toMatch(/^shellfleet: [^\n]{10,400}\n$/);
    expect(run.stderr).not.toMatch(/ at .*\.ts:\d+/);
    // Closed sessions may leave the index during the test.
    expect(before).toEqual(expect.arrayContaining(await sessionIds()));
  });

  test('does not include help, which names every verb', async () => {
    const { exitCode, stdout, stderr } = await cli.text(['--help']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    for (const verb of [
      'up',
      'down',
      'doctor',
      'worker',
      'exec',
      'run',
      'attach',
      'ps',
      'logs',
      'wait',
      'cancel',
      'cp',
      'restart',
      'close',
      'hosts',
      'queue',
      'batch',
    ])
      expect(stdout).toMatch(new RegExp(`^ +${verb} `, 'm'));
  });

  test('passes no control characters of ids and errors to the terminal', async () => {
    const { stderr } = await cli.text(['exec', 's\u001b]0;owned\u0007', '--', 'true']);
    expect(stderr).not.toContain('\u001b');
    expect(stderr).not.toContain('\u0007');
  });

  test('fails within seconds with exit code 125 when no Redis answers', async () => {
    const began = performance.now();
    const { exitCode, stderr } = await cli.text(['--redis-url', 'redis://127.0.0.1:1', 'ps']);
    expect(exitCode).toBe(125);
    expect(stderr).toMatch(/^shellfleet: [^\n]*QUEUE_UNAVAILABLE\)\n$/);
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});
