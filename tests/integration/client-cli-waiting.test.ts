import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fleetKeys, hostKeys, toolQueue } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { runCli, startCli } from '../support/run-cli.ts';
import { untilFound } from '../support/until.ts';

// What the command line prints when no host can run a command. stderr is no terminal in these tests.

let stage: ClientStage;
beforeAll(async () => {
  stage = await setClientStage();
  await stage.startHost();
});
afterAll(() => stage[Symbol.asyncDispose]());

const stateOf = async (id: string) => (await (await (await stage.connect()).attach(id))?.info())?.state;

describe('`shellfleet exec` without a host', () => {
  test('reports the missing host once, waits, and runs when a host comes', async () => {
    await using alone = await setClientStage();
    const { output, end } = startCli(alone, ['exec', 'early', '--', 'echo ran']);
    const where = `the namespace ${alone.namespace} (SHELLFLEET_NAMESPACE) of Redis at ${new URL(alone.own.url).host} (SHELLFLEET_REDIS_URL).`;
    const words = `shellfleet: No host of this fleet is up. Start one: \`shellfleet up\`, or \`shellfleet worker\` on another machine. It is looked for in ${where} early waits until one can.\n`;
    await untilFound('it says so', async () => output().stderr === words);
    await alone.startHost();
    expect(await end).toMatchObject({ exitCode: 0, stdout: Buffer.from('ran\n'), stderr: words });
  });
});

describe('`shellfleet exec` at its start deadline', () => {
  test('exits with 124 and leaves no open session if there is no host', async () => {
    await using alone = await setClientStage();
    const run = await runCli(alone, ['exec', 'late', '--start-deadline', '500ms', '--', 'true']);
    expect(run).toMatchObject({
      exitCode: 124,
      stderr: expect.stringMatching(
        /No host of this fleet is up\. .* waits until one can\.\n.*within 500 ms, so nothing was run\. .*start-deadline/,
      ),
    });
    expect(await (await (await alone.connect()).attach('late'))?.info()).toMatchObject({ state: 'closed' });
  });
});

describe('SIGTERM', () => {
  test('cancels a one-shot command that no live host can run', async () => {
    const { child, output, end } = startCli(stage, ['run', '--user', 'root', '--', 'true']);
    await untilFound('it says so', async () =>
      output().stderr.includes("user: this host does not allow root (its operator's setting: SHELLFLEET_USERS"),
    );
    child.kill('SIGTERM');
    expect((await end).stderr).toMatch(/Leaving; no live host can run run-\S+, so it is cancelled\.\n$/);
    const open: string[] = [];
    for await (const { id } of (await stage.connect()).sessions()) if (id.startsWith('run-')) open.push(id);
    expect(open).toEqual([]);
  });
});

describe('`shellfleet batch run` without a host', () => {
  test('reports once why its tasks wait, and ends at its start deadline', async () => {
    await using alone = await setClientStage();
    const directory = await mkdtemp(join(tmpdir(), 'sf-batch-waits-'));
    await writeFile(join(directory, 'tasks'), '{"id":"a","script":"true"}\n{"id":"b","script":"true"}\n');
    const args = ['batch', 'run', join(directory, 'tasks'), '--out', join(directory, 'out')];
    const run = await runCli(alone, [...args, '--start-deadline', '500ms']);
    expect(run.exitCode).toBe(124);
    await rm(directory, { recursive: true });
    expect(run.stderr.match(/No host of this fleet is up\. .* waits until one can\./g)).toHaveLength(1);
  });
});

describe('`shellfleet exec` while all slots are taken', () => {
  test('reports its position in the queue', async () => {
    await using alone = await setClientStage();
    await alone.startHost({ slots: 1 });
    const fleet = await alone.connect();
    await (await fleet.session('holder')).run('true');
    const waits = await fleet.session('before');
    await waits.submit('true');
    await expect.poll(async () => (await waits.info()).position).toBe(1);
    const { child, output, end } = startCli(alone, ['exec', 'full', '--', 'true']);
    await untilFound('it says so', async () =>
      output().stderr.includes('All slots are taken: full waits for one (2nd of 2).'),
    );
    expect((await runCli(alone, ['ps'])).stdout.toString()).toMatch(/^full +queued #2 .*Z {2}all slots are taken$/m);
    child.kill('SIGINT');
    expect((await end).exitCode).toBe(130);
  });
});

describe('work behind an earlier command of its session', () => {
  test.each([
    ['exec', ['exec', 'busy', '--', 'echo ran'], 'ran\n', ''],
    ['restart', ['restart', 'busy'], '', 'shellfleet: busy has a fresh shell.\n'],
  ])('names that command while `%s` waits for it', async (_verb, args, stdout, said) => {
    await using alone = await setClientStage();
    await alone.startHost();
    const earlier = await (await (await alone.connect()).session('busy')).submit('sleep 60');
    const { output, end } = startCli(alone, args);
    const words = `shellfleet: Session busy runs one command at a time, and this waits for ${earlier.id}. \`shellfleet cancel ${earlier.id}\` ends that one.\n`;
    await untilFound('it says so', async () => output().stderr === words);
    await earlier.cancel();
    expect(await end).toMatchObject({ exitCode: 0, stdout: Buffer.from(stdout), stderr: `${words}${said}` });
  });

  test('does not name the own command, however long it runs', async () => {
    await using alone = await setClientStage();
    await alone.startHost();
    expect(await runCli(alone, ['exec', 'slow', '--', 'sleep 4'])).toMatchObject({ exitCode: 0, stderr: '' });
  });
});

describe('a tool call that waits', () => {
  const offer = (alone: ClientStage, host: string) =>
    alone.redis.set(
      hostKeys(alone.keyspace, host).tools,
      JSON.stringify([{ name: 'add', inputSchema: {}, timeoutMs: 1_000 }]),
    );

  test('reports the reason and each change of it, and ends at Ctrl-C', async () => {
    await using alone = await setClientStage();
    await alone.redis.zadd(fleetKeys(alone.keyspace).knownTools, Date.now(), 'add');
    const { child, output, end } = startCli(alone, ['tools', 'call', 'add']);
    // A host that gets no processor time may count as down for a moment.
    const lines = () => [...new Set(output().stderr.split('\n').slice(0, -1))];
    await untilFound('no host is up', async () => lines().length === 1);
    const { id } = await alone.startHost();
    await untilFound('none offers it', async () => lines().length === 2);
    await offer(alone, id);
    await untilFound('it is busy', async () => lines().length === 3);
    child.kill('SIGINT');
    expect(await end).toMatchObject({ exitCode: 130 });
    const where = `the namespace ${alone.namespace} (SHELLFLEET_NAMESPACE) of Redis at ${new URL(alone.own.url).host} (SHELLFLEET_REDIS_URL).`;
    expect(lines()).toEqual([
      `shellfleet: No host of this fleet is up. Start one: \`shellfleet up\`, or \`shellfleet worker\` on another machine. It is looked for in ${where} The call of add waits until one can take it.`,
      "shellfleet: No live host offers the tool 'add'. The operator of a host lists the modules of its tools in SHELLFLEET_TOOLS. The call of add waits until one can take it.",
      `shellfleet: Every host that offers the tool 'add' is busy (${id}). The call of add waits until one has room.`,
      'shellfleet: The call of add was cancelled.',
    ]);
  });

  test.each(['SIGTERM', 'SIGHUP'] as const)('is cancelled by %s, and leaves the queue', async (signal) => {
    await using alone = await setClientStage();
    await alone.redis.zadd(fleetKeys(alone.keyspace).knownTools, Date.now(), 'add');
    const { child, end } = startCli(alone, ['tools', 'call', 'add']);
    const waiting = () => alone.redis.llen(`${fleetKeys(alone.keyspace).tools}:${toolQueue('add', 'default')}:wait`);
    await untilFound('it waits', async () => (await waiting()) === 1);
    child.kill(signal);
    expect(await end).toMatchObject({ exitCode: 130, stderr: 'shellfleet: The call of add was cancelled.\n' });
    expect(await waiting()).toBe(0);
  });

  test('exits with 124 at its start deadline and does not start', async () => {
    await using alone = await setClientStage();
    await alone.redis.zadd(fleetKeys(alone.keyspace).knownTools, Date.now(), 'add');
    const run = await runCli(alone, ['tools', 'call', 'add', '--start-deadline', '2500ms']);
    expect(run).toMatchObject({
      exitCode: 124,
      stderr: expect.stringMatching(
        /^shellfleet: No host of this fleet is up\. [^\n]*\n[^\n]* did not start within 2500 ms \(not-started\)\n$/,
      ),
    });
  });
});

describe('a session that was closed while it waited', () => {
  test('loses its position in the queue', async () => {
    await using alone = await setClientStage();
    const fleet = await alone.connect();
    const waiting = await Promise.all(
      ['first', 'second'].map(async (id) => {
        const session = await fleet.session(id);
        await session.submit('true');
        return session;
      }),
    );
    const positions = () => Promise.all(waiting.map(async (session) => (await session.info()).position));
    await expect.poll(positions).toEqual([1, 2]);
    await waiting[0]?.close();
    expect(await positions()).toEqual([undefined, 1]);
    // The id can wait again.
    waiting[0] = await fleet.session('first');
    await waiting[0].submit('true');
    await expect.poll(positions).toEqual([2, 1]);
  });
});

describe('`shellfleet exec` that cannot run', () => {
  test('names a policy that no host offers, and leaves no session after Ctrl-C', async () => {
    const { child, output, end } = startCli(stage, ['exec', 'elsewhere', '--policy', 'host', '--', 'true']);
    const words =
      "shellfleet: No live host offers the policy 'host'; they offer 'docker'. The operator of a host lists what it offers in SHELLFLEET_POLICIES. elsewhere waits until one can.\n";
    await untilFound('it says so', async () => output().stderr === words);
    expect((await runCli(stage, ['ps'])).stdout.toString()).toMatch(
      /^elsewhere +queued #1 .*Z {2}No live host offers the policy 'host'; they offer 'docker'$/m,
    );
    child.kill('SIGINT');
    expect((await end).exitCode).toBe(130);
    expect(await stateOf('elsewhere')).toBe('closed');
  });

  test('names the next step if no host has its seal key, and leaves no session', async () => {
    const env = { SHELLFLEET_SEAL_KEY: randomBytes(32).toString('base64') };
    expect(await runCli(stage, ['exec', 'foreign', '--', 'true'], { env })).toMatchObject({
      exitCode: 125,
      stderr: expect.stringMatching(
        /^shellfleet: No live host .* has the seal key .* Set SHELLFLEET_SEAL_KEY to the key of the hosts, .*\(SEAL_KEY_UNKNOWN\)\n$/,
      ),
    });
    expect(await stateOf('foreign')).toBe('closed');
  });

  test('cannot use a session of another seal key, but `close` can close it', async () => {
    await runCli(stage, ['exec', 'theirs', '--', 'true']);
    const env = { SHELLFLEET_SEAL_KEY: randomBytes(32).toString('base64') };
    expect(await runCli(stage, ['exec', 'theirs', '--', 'true'], { env })).toMatchObject({
      exitCode: 125,
      stderr: expect.stringMatching(/^shellfleet: .*SHELLFLEET_SEAL_KEY.*\(SEAL_KEY_UNKNOWN\)\n$/),
    });
    expect((await runCli(stage, ['close', 'theirs'], { env })).stderr).toBe('shellfleet: theirs is closed.\n');
  });

  test.each([
    [
      'nothing listens',
      () => 'redis://127.0.0.1:1',
      /Redis at \S+ cannot be reached: .* Start it, or set SHELLFLEET_REDIS_URL\./,
    ],
    [
      'the password is wrong',
      () => stage.own.url.replace('redis://', 'redis://nobody:wrong@'),
      /Redis at \S+ refuses this user or password\. Correct them in SHELLFLEET_REDIS_URL/,
    ],
  ])('names the next step in one line when %s', async (_title, url, words) => {
    const run = await runCli(stage, ['exec', 's', '--', 'true'], { env: { SHELLFLEET_REDIS_URL: url() } });
    expect(run.exitCode).toBe(125);
    expect(run.stderr).toMatch(words);
    expect(run.stderr.trimEnd().split('\n')).toHaveLength(1);
  });

  test('warns in one line about a clock that is far off, and runs the command', async () => {
    const ahead = 'data:text/javascript,const now = Date.now; Date.now = () => now() + 7_200_000;';
    const run = await runCli(stage, ['exec', 'ahead', '--', 'echo ran'], {
      env: { NODE_OPTIONS: `--import "${ahead.replaceAll(' ', '%20')}"` },
    });
    expect(run.stdout.toString()).toBe('ran\n');
    expect(run.stderr).toMatch(
      /^shellfleet: The clock of this machine is 120 min ahead of that of Redis at \S+, .* Set both by NTP\.\n$/,
    );
  });
});

describe('a secret that is too short to be masked', () => {
  test('is named in a warning to its submitter', async () => {
    const run = await runCli(stage, ['exec', 'short', '--secret', 'PIN', '--', 'true'], { env: { PIN: '12345' } });
    expect([run.exitCode, run.stderr]).toEqual([
      0,
      'shellfleet: The secret PIN is shorter than 6 characters, and is not masked.\n',
    ]);
  });
});
