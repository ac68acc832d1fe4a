import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tenantKeys } from '@shellfleet/protocol';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { untilFound } from '../support/until.ts';

// The spec of a session on the command line, several sessions at once, and tools.

let stack: TestFleet;
let cli: FleetCli;
let directory: string;
beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'sf-cli-')));
  const env = {
    SHELLFLEET_TOOLS: toolModules('everyday', 'hostile'),
    SHELLFLEET_WORKSPACES: join(directory, 'shared'),
  };
  await mkdir(join(directory, 'shared'));
  stack = await startFleet({ slots: 10, env });
  cli = new FleetCli(stack);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const jsonLines = (text: string) => text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));

describe('sessions on the command line', () => {
  test('get limits, user, variables, scripts and labels from exec; a differing flag names its field', async () => {
    await writeFile(join(directory, 'spec.json'), JSON.stringify({ commandTimeoutMs: 50_000, env: { FROM: 'file' } }));
    const flags = [
      [
        '--memory',
        '96m',
        '--cpus',
        '0.5',
        '--pids',
        '77',
        '-u',
        '1234:1234',
        '--idle-timeout',
        '10m',
        '--label',
        'team=ci',
      ],
      [
        '--session-env',
        'KEPT=yes',
        '--startup',
        'A=1',
        '--startup',
        'B=$((A + 1))',
        '--spec',
        join(directory, 'spec.json'),
      ],
    ].flat();
    const read = (name: string) => `cat /sys/fs/cgroup/${name} 2>/dev/null || cat /sys/fs/cgroup/*/${name}`;
    const first = await cli.text(['exec', 'made', ...flags, '--', 'id -u; echo "$KEPT $FROM $B"']);
    expect(first).toEqual({ exitCode: 0, stdout: '1234\nyes file 2\n', stderr: '' });
    const limits = await cli.text([
      'exec',
      'made',
      '--',
      `${read('memory.max')}; ${read('memory/memory.limit_in_bytes')}; true`,
    ]);
    expect(limits.stdout).toContain(String(96 * 2 ** 20));
    expect((await cli.text(['exec', 'made', ...flags, 'true'])).exitCode).toBe(0);
    const other = await cli.text(['exec', 'made', ...flags, '--memory', '97m', '--label', 'team=qa', 'true']);
    expect(other).toEqual({
      exitCode: 125,
      stdout: '',
      stderr: expect.stringMatching(
        /another spec \(different: labels\.team, limits\.memoryBytes\)\..*\(SESSION_CONFLICT\)\n$/,
      ),
    });
    expect(jsonLines((await cli.text(['ps', '--label', 'team=ci', '--json'])).stdout)).toMatchObject([
      { id: 'made', labels: { team: 'ci' } },
    ]);
  });

  test('work in a directory of the host that they may only read', async () => {
    await writeFile(join(directory, 'shared', 'file'), 'of the host\n');
    const run = (script: string) =>
      cli.text(['exec', 'reads', '--workspace', `${join(directory, 'shared')}:ro`, '--', script]);
    expect(await run('cat file; cd /tmp && echo kept > new')).toEqual({
      exitCode: 0,
      stdout: 'of the host\n',
      stderr: '',
    });
    expect(await run('cat new; touch /workspace/new 2>/dev/null || echo refused')).toEqual({
      exitCode: 0,
      stdout: 'kept\nrefused\n',
      stderr: '',
    });
    await cli.run(['close', 'reads']);
  });

  test('run words as they are typed, and take the short flags of docker exec', async () => {
    await cli.run(['exec', 'typed', 'touch', 'a', 'b']);
    expect((await cli.text(['exec', 'typed', 'ls', '-1', '/workspace'])).stdout).toBe('a\nb\n');
    expect(
      await cli.text(['exec', '-i', '-w', '/tmp', '-e', 'X=1', 'typed', 'sh', '-c', 'cat; pwd; echo $X'], {
        stdin: 'in\n',
      }),
    ).toEqual({
      exitCode: 0,
      stdout: 'in\n/tmp\n1\n',
      stderr: '',
    });
    expect((await cli.text(['exec', 'typed', '--timeout', '300ms', 'sleep', '60'])).exitCode).toBe(124);
    expect(await cli.text(['exec', '-it', 'typed', 'bash'])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringMatching(/^shellfleet: A command has no terminal\. Use `shellfleet attach SESSION`.*\n$/),
    });
  });

  test('are closed by id or label, past a failure, and listed with time and reason', async () => {
    const ids = ['one', 'two', 'job-1', 'job-2'];
    await Promise.all(
      ids.map(async (id) =>
        (await stack.fleet.session(id, { labels: id.startsWith('job') ? { job: '7' } : {} })).run('true'),
      ),
    );
    const some = await cli.text(['close', 'one', 'not a name', 'two', 'never-was']);
    expect([some.exitCode, some.stdout]).toEqual([2, '']);
    expect(some.stderr.split('\n').sort()).toEqual([
      '',
      expect.stringMatching(/^shellfleet: .*SESSION_SPEC_INVALID/),
      'shellfleet: never-was was not open.',
      'shellfleet: one is closed.',
      'shellfleet: two is closed.',
    ]);
    expect(await cli.text(['close', '--label', 'job=8'])).toMatchObject({
      exitCode: 0,
      stderr: 'shellfleet: No session has this label.\n',
    });
    const labelled = await cli.text(['close', '--label', 'job=7']);
    expect(labelled.stderr.split('\n').sort()).toEqual([
      '',
      'shellfleet: job-1 is closed.',
      'shellfleet: job-2 is closed.',
    ]);
    expect((await cli.text(['close'])).exitCode).toBe(2);
    const closed = async () => {
      const rows = jsonLines((await cli.text(['ps', '--json', '--all', '--label', 'job=7'])).stdout);
      return rows.map(({ id, state, closedAt, closeReason }) => [id, state, typeof closedAt, closeReason]).sort();
    };
    const expected = ['job-1', 'job-2'].map((id) => [id, 'closed', 'string', 'a caller closed it']);
    expect(await closed()).toEqual(expected);
    const redis = new Redis(stack.redisUrl);
    const { index } = tenantKeys(stack.keyspace, 'default');
    await untilFound('upkeep has been there', async () => (await redis.zscore(index, 'job-1')) === null);
    redis.disconnect();
    expect(await closed()).toEqual(expected);
    const table = (await cli.text(['ps', '--state', 'closed'])).stdout;
    expect(table).toMatch(/^SESSION .* CLOSED +CLOSED BECAUSE\n/);
    expect(table).toMatch(/^job-1 +closed .*Z {2}a caller closed it$/m);
    expect(jsonLines((await cli.text(['ps', '--json', '--label', 'job=7'])).stdout)).toEqual([]);
  });
});

describe('tools on the command line', () => {
  test('are listed, and called with arguments from line, file or stdin; failures set exit codes', async () => {
    const { stdout } = await cli.text(['tools', 'ls']);
    expect(stdout).toMatch(/^TOOL +HOSTS +TIME LIMIT +DESCRIPTION\n/);
    expect(stdout).toMatch(/^add +h1 +30 s +Adds two numbers\.$/m);
    expect(jsonLines((await cli.text(['tools', 'ls', '--json'])).stdout).map(({ name }) => name)).toContain('echo');
    const args = '{"a": 1, "b": 2}';
    await writeFile(join(directory, 'args.json'), args);
    for (const given of [args, `@${join(directory, 'args.json')}`, '-']) {
      const called = await cli.text(['tools', 'call', 'add', '--args', given], { stdin: args });
      expect(called).toEqual({ exitCode: 0, stdout: '{"sum":3}\n', stderr: '' });
    }
    expect(await cli.text(['tools', 'call', 'other_name'])).toEqual({ exitCode: 0, stdout: 'named\n', stderr: '' });
    const wrong = await cli.text(['tools', 'call', 'add', '--json', '--args', '{"a": "x"}']);
    expect([wrong.exitCode, jsonLines(wrong.stdout)]).toEqual([2, [expect.objectContaining({ ok: false })]]);
    expect((await cli.text(['tools', 'call', 'nowhere'])).exitCode).toBe(2);
    expect(await cli.text(['tools', 'call', 'add', '--args', '{a'])).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringContaining('not JSON'),
    });
    const slow = ['tools', 'call', 'mark', '--args', JSON.stringify({ path: '/dev/null', id: 'x', waitMs: 60_000 })];
    expect((await cli.text([...slow, '--timeout', '500ms'])).exitCode).toBe(124);
  });

  test('show when their calls begin and end, and Ctrl-C cancels a call', async () => {
    const watch = cli.start(['tools', 'watch', '--json']);
    const events = () =>
      jsonLines(
        watch
          .output()
          .stdout.toString()
          .replace(/[^\n]*$/, ''),
      );
    await untilFound('the tools are there', async () =>
      events().some(({ type, tool }) => type === 'tool.added' && tool.name === 'mark'),
    );
    const args = JSON.stringify({ path: join(directory, 'marks'), id: 'x', waitMs: 60_000 });
    const call = cli.start(['tools', 'call', 'mark', '--args', args]);
    await untilFound('it has begun', async () =>
      events().some(({ type, name }) => type === 'call.started' && name === 'mark'),
    );
    call.child.kill('SIGINT');
    expect(await call.end).toMatchObject({ exitCode: 130, stderr: 'shellfleet: The call of mark was cancelled.\n' });
    await untilFound('it has ended', async () =>
      events().some(({ type, code }) => type === 'call.ended' && code === 'cancelled'),
    );
    watch.child.kill('SIGINT');
    expect((await watch.end).signal).toBe('SIGINT');
  });
});
