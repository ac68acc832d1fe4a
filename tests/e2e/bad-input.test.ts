import { Fleet, type RunOptions, type Session, type SessionSpec } from '@shellfleet/client';
import { POLICY_NAMES } from '@shellfleet/protocol';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// Bad input is refused at submit, with the field and its limit, and is not stored. No worker runs, so only the call
// itself can have written to Redis. The cases are numbered across this file and bad-input-in-the-sandbox.test.ts.

const KIB = 1024;
const MIB = 1024 * KIB;

const LIMITED_TO = (name: string) => ({ network: 'limited', allowedHosts: [name] });

let stack: TestFleet;
let redis: Redis;
let session: Session;
beforeAll(async () => {
  stack = await startFleet({ workers: 0 });
  redis = new Redis(stack.redisUrl);
  session = await stack.fleet.session('bad-input');
  // The session's item in the index is written after its record.
  await session.info();
});
afterAll(async () => {
  redis?.disconnect();
  await stack?.[Symbol.asyncDispose]();
});

/** Returns all keys of the namespace with their contents. */
async function contents(): Promise<[string, string][]> {
  const keys = (await redis.keys(`${stack.keyspace}:*`)).sort();
  return Promise.all(
    keys.map(async (key) => [key, ((await redis.dumpBuffer(key)) as Buffer).toString('base64')] as [string, string]),
  );
}

/** Expects a refusal with this code and these fields; the message has the limit and does not repeat the value. */
async function expectRefusal(call: () => Promise<unknown>, code: string, issues: [path: string, words: string][]) {
  const before = await contents();
  const error = await call().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({
    name: 'ShellfleetError',
    code,
    retryable: false,
    context: { issues: issues.map(([path, words]) => ({ path, message: expect.stringContaining(words) })) },
  });
  const { message } = error as Error;
  expect(message.length).toBeLessThan(2_000);
  for (const [path, words] of issues) expect(message).toContain(path === '' ? words : `${path}: `);
  expect(await contents()).toEqual(before);
}

const submitting = (script: unknown, options: object = {}) => session.submit(script as string, options as RunOptions);

describe('the script of a command', () => {
  // S1-44, S2-20
  test.each([
    [1, 'missing', undefined, 'must be a string'],
    [1, 'null', null, 'must be a string'],
    [2, 'empty', '', 'must not be empty'],
    [2, 'of blanks', ' \n\t\n', 'must not be empty'],
    [3, 'a number', 5, 'must be a string'],
    [3, 'an array', ['ls', '-l'], 'must be a string'],
    [3, 'an object', { command: 'ls' }, 'must be a string'],
    [6, 'with a NUL byte', 'echo a\0b', 'NUL byte at offset 6'],
    [7, 'with a lone surrogate', 'echo \ud800', 'lone surrogate'],
    [8, 'a byte too long', 'x'.repeat(MIB + 1), '1048577 bytes; the limit is 1048576'],
    [8, 'too long in bytes alone', 'é'.repeat(MIB / 2 + 1), '1048578 bytes; the limit is 1048576'],
  ])('is refused as case %i: %s', async (_row, _what, script, words) => {
    await expectRefusal(() => submitting(script), 'COMMAND_INVALID', [['script', words]]);
  });

  // S2-31
  test.each(POLICY_NAMES)('is refused when it is empty, in a session of the policy %s', async (policy) => {
    const of = await stack.fleet.session(`empty-${policy}`, { policy });
    await of.info();
    await expectRefusal(() => of.submit(''), 'COMMAND_INVALID', [['script', 'must not be empty']]);
  });
});

describe('options of a command', () => {
  const deep: Record<string, unknown> = {};
  let inner = deep;
  for (let depth = 0; depth < 10_000; depth++) {
    inner.a = {};
    inner = inner.a as Record<string, unknown>;
  }

  // S1-35, S2-12
  test.each([
    [10, { env: deep }, 'options.env.a', 'must be a string'],
    [12, JSON.parse('{"__proto__": {"polluted": true}}'), 'options.__proto__', 'unknown field'],
    [12, { constructor: 1 }, 'options.constructor', 'unknown field'],
    [13, { timeoutms: 5 }, 'options.timeoutms', 'unknown field'],
    [14, { timeoutMs: Number.NaN }, 'options.timeoutMs', 'must be'],
    [14, { timeoutMs: Number.POSITIVE_INFINITY }, 'options.timeoutMs', 'must be'],
    [14, { timeoutMs: '30' }, 'options.timeoutMs', 'must be a number'],
    [14, { timeoutMs: true }, 'options.timeoutMs', 'must be a number'],
    [15, { timeoutMs: 0 }, 'options.timeoutMs', 'must be 1 to 86400000 ms'],
    [15, { timeoutMs: -1 }, 'options.timeoutMs', 'must be 1 to 86400000 ms'],
    [15, { timeoutMs: 0.5 }, 'options.timeoutMs', 'whole number'],
    [15, { noOutputTimeoutMs: 86_400_001 }, 'options.noOutputTimeoutMs', 'must be 1 to 86400000 ms'],
    [16, { timeoutMs: 2 ** 31 }, 'options.timeoutMs', 'must be 1 to 86400000 ms'],
    [16, { killGraceMs: 60_001 }, 'options.killGraceMs', '60000'],
    [28, { idempotencyKey: '' }, 'options.idempotencyKey', 'must not be empty'],
    [28, { idempotencyKey: 'k'.repeat(1_025) }, 'options.idempotencyKey', 'at most 256 characters'],
    [28, { idempotencyKey: 'schlüssel' }, 'options.idempotencyKey', 'visible ASCII'],
    [29, { env: { 'A=B': 'x' } }, 'options.env.A=B', 'not a variable name'],
    [29, { env: { '': 'x' } }, 'options.env.', 'not a variable name'],
    [29, { env: { '1A': 'x' } }, 'options.env.1A', 'not a variable name'],
    [29, { env: { 'A\nB': 'x' } }, 'options.env.A\nB', 'not a variable name'],
    [30, { env: { A: { b: 1 } } }, 'options.env.A', 'must be a string'],
    [30, { env: { A: 5 } }, 'options.env.A', 'must be a string'],
    [30, { env: ['A=1'] }, 'options.env', 'must be an object'],
    [32, { env: { A: 'a\0b' } }, 'options.env.A', 'NUL byte at offset 1'],
    [32, { env: { A: 'x'.repeat(128 * KIB + 1) } }, 'options.env.A', '131073 bytes; the limit is 131072'],
    [
      32,
      { env: Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`V${n}`, 'x'.repeat(128 * KIB)])) },
      'options.env',
      'the limit is 1048576',
    ],
    [34, { cwd: 'relative' }, 'options.cwd', 'must be an absolute path'],
    [34, { cwd: '../..' }, 'options.cwd', 'must be an absolute path'],
    [34, { cwd: '~' }, 'options.cwd', 'must be an absolute path'],
    [34, { cwd: '/a\0b' }, 'options.cwd', 'NUL byte'],
    [34, { cwd: '/a\ud800' }, 'options.cwd', 'lone surrogate'],
    [34, { cwd: `/${'x'.repeat(5_000)}` }, 'options.cwd', 'the limit is 4096'],
    [9, { stdin: 'x'.repeat(MIB + 1), retry: 'idempotent' }, 'options.stdin', 'give at most 1048576 bytes'],
    [9, { stdin: 5 }, 'options.stdin', 'must be a string, bytes'],
    [48, { stdin: { open: true }, retry: 'idempotent' }, 'options.stdin', 'cannot be read a second time'],
    [48, { stdin: [], idempotencyKey: 'k' }, 'options.stdin', 'of unknown content'],
    [13, { encoding: 'latin1' }, 'options.encoding', "must be 'utf8' or 'base64'"],
    [13, { retry: 'always' }, 'options.retry', "must be 'never' or 'idempotent'"],
    [13, { durable: 'yes' }, 'options.durable', 'must be true or false'],
    [13, { startDeadlineMs: 0 }, 'options.startDeadlineMs', 'must be 1 to'],
    [41, { privileged: true }, 'options.privileged', 'unknown field'],
  ])('are refused as case %i: %o', async (_row, options, path, words) => {
    await expectRefusal(() => submitting('true', options), 'COMMAND_INVALID', [[path, words]]);
  });

  test.each([
    'LD_PRELOAD',
    'LD_AUDIT',
    'BASH_ENV',
    'ENV',
    'PROMPT_COMMAND',
    'SHELLOPTS',
    'BASHOPTS',
    'PS4',
    'IFS',
    'DOCKER_HOST',
  ])('are refused with the variable %s, in a command and in a session', async (name) => {
    const words = 'would change how the shell itself runs';
    const env = { [name]: 'x' };
    await expectRefusal(() => submitting('true', { env }), 'COMMAND_INVALID', [[`options.env.${name}`, words]]);
    await expectRefusal(() => stack.fleet.session('never', { env }), 'SESSION_SPEC_INVALID', [
      [`spec.env.${name}`, words],
    ]);
  });

  test('are refused with every wrong field at once', async () => {
    await expectRefusal(() => submitting('', { timeoutMs: 0, cwd: 'x' }), 'COMMAND_INVALID', [
      ['script', 'must not be empty'],
      ['options.timeoutMs', 'must be 1 to 86400000 ms'],
      ['options.cwd', 'must be an absolute path'],
    ]);
  });

  test('leave no session behind when a one-shot run is refused', async () => {
    await expectRefusal(() => stack.fleet.run(''), 'COMMAND_INVALID', [['script', 'must not be empty']]);
    await expectRefusal(() => stack.fleet.run('true', { timeoutMs: 0 }), 'COMMAND_INVALID', [
      ['options.timeoutMs', 'must be 1 to 86400000 ms'],
    ]);
    await expectRefusal(() => stack.fleet.run('true', { spec: { image: 'A B' } }), 'SESSION_SPEC_INVALID', [
      ['spec.image', 'is not an image name'],
    ]);
  });
});

describe('a session id', () => {
  const ids = [
    '',
    ' ',
    'a b',
    'a:b',
    '{a}',
    '*',
    'a?',
    'a\nb',
    'a\0b',
    'a/b',
    '../a',
    'a\r\nb',
    'é',
    'e\u0301',
    '[a]',
    '$(id)',
    '%2e',
  ];
  test.each(ids)('is refused for its characters: %j', async (id) => {
    const words = id === '' ? 'must not be empty' : 'may only hold A-Z a-z 0-9 . _ -';
    await expectRefusal(() => stack.fleet.session(id), 'SESSION_SPEC_INVALID', [['id', words]]);
  });

  test.each([undefined, null, 5, {}, ['a']])('is refused for its type: %j', async (id) => {
    await expectRefusal(() => stack.fleet.session(id as string), 'SESSION_SPEC_INVALID', [['id', 'must be a string']]);
  });

  test.each([129, 5_000_000])('is refused by its length alone when it has %i characters', async (length) => {
    const began = performance.now();
    await expectRefusal(() => stack.fleet.session(':'.repeat(length)), 'SESSION_SPEC_INVALID', [
      ['id', 'must be at most 128 characters'],
    ]);
    expect(performance.now() - began).toBeLessThan(1_000);
  });
});

describe('a session spec', () => {
  // S0-32, S0-34, S0-35, S0-47, S1-34
  test.each([
    [17, { output: { maxLines: 0 } }, 'spec.output.maxLines', 'must be positive'],
    [18, { output: { maxBytes: 0 } }, 'spec.output.maxBytes', 'must be positive'],
    [18, { output: { maxBytes: -5 } }, 'spec.output.maxBytes', 'must be positive'],
    [18, { output: { maxBytes: 1.5 } }, 'spec.output.maxBytes', 'must be a whole number'],
    [18, { output: { streamBytes: 2 ** 40 } }, 'spec.output.streamBytes', 'must be at most'],
    [18, { output: { keep: 'middle' } }, 'spec.output.keep', "must be 'head', 'tail' or 'head-tail'"],
    [40, { image: 'two words' }, 'spec.image', 'is not an image name'],
    [40, { image: '--privileged' }, 'spec.image', 'is not an image name'],
    [40, { image: 'a;rm -rf /' }, 'spec.image', 'is not an image name'],
    [40, { image: 'a@sha256:123' }, 'spec.image', 'is not an image name'],
    [40, { image: 'x'.repeat(300) }, 'spec.image', 'at most 256 characters'],
    [40, { image: '' }, 'spec.image', 'is not an image name'],
    [41, { privileged: true }, 'spec.privileged', 'unknown field'],
    [41, { binds: ['/:/host'] }, 'spec.binds', 'unknown field'],
    [41, { policy: { type: 'docker', capAdd: ['ALL'] } }, 'spec.policy.capAdd', 'unknown field'],
    [41, { policy: 'none' }, 'spec.policy.type', "must be 'docker', 'host', 'bubblewrap', 'codex' or 'kubernetes'"],
    [41, { policy: 'host', image: 'alpine' }, 'spec.image', 'has no meaning under the host policy'],
    [42, { limits: { memoryBytes: '512mb!' } }, 'spec.limits.memoryBytes', 'must be a number of bytes'],
    [42, { limits: { memoryBytes: 0 } }, 'spec.limits.memoryBytes', 'must be positive if provided'],
    [42, { limits: { memoryBytes: -1 } }, 'spec.limits.memoryBytes', 'must be positive if provided'],
    [42, { secrets: { KEY: 'x'.repeat(16_385) } }, 'spec.secrets.KEY', 'is 16385 bytes; the limit is 16384'],
    [42, { secrets: { KEY: `begin${'ab'.repeat(50)}` } }, 'spec.secrets.KEY', 'repeats one piece for more than 64'],
    [42, { limits: { memoryBytes: 4 * MIB } }, 'spec.limits.memoryBytes', 'at least 33554432 bytes'],
    [43, { limits: { cpus: '' } }, 'spec.limits.cpus', 'must be a number'],
    [43, { limits: { cpus: 0 } }, 'spec.limits.cpus', 'at least 0.01'],
    [43, { limits: { cpus: 1e9 } }, 'spec.limits.cpus', 'at most 1024'],
    [43, { limits: { pids: 1 } }, 'spec.limits.pids', 'at least 16'],
    [44, { user: '' }, 'spec.user', 'must be a non-empty string when provided'],
    [44, { user: 'x;y' }, 'spec.user', 'is not a user'],
    [44, { user: '-1' }, 'spec.user', 'is not a user'],
    [14, { idleTimeoutMs: 'soon' }, 'spec.idleTimeoutMs', 'must be a number'],
    [15, { startupTimeoutMs: 0 }, 'spec.startupTimeoutMs', 'must be 1 to 86400000 ms'],
    [16, { commandTimeoutMs: 2 ** 31 }, 'spec.commandTimeoutMs', 'must be 1 to 86400000 ms'],
    [34, { cwd: 'workspace' }, 'spec.cwd', 'must be an absolute path'],
    [2, { startupCommands: [''] }, 'spec.startupCommands.0', 'must not be empty'],
    [3, { startupCommands: 'echo' }, 'spec.startupCommands', ''],
    [13, { shell: [] }, 'spec.shell', 'must contain at least one argument'],
    [13, { redaction: [{ type: '-', strategy: 'mask' }] }, 'spec.redaction.0.type', 'must be 1 to 64 letters'],
    [13, { priority: -1 }, 'spec.priority', 'must be 0 to 1000'],
    [13, { onHostLoss: 'retry' }, 'spec.onHostLoss', "must be 'fail' or 'recreate'"],
    [13, { sandbox: 'read-only' }, 'spec.sandbox', 'must be an object of options: mode, network'],
    [13, { sandbox: { mode: 'write' } }, 'spec.sandbox.mode', 'must be one of read-only, workspace-write'],
    [13, { sandbox: { network: 'none' } }, 'spec.sandbox.network', 'must be one of restricted, limited, full'],
    [13, { sandbox: { selection: 'no' } }, 'spec.sandbox.selection', "must be 'auto', 'require' or 'forbid'"],
    [13, { sandbox: { networks: [] } }, 'spec.sandbox.networks', 'unknown field'],
    [13, { sandbox: { allowedHosts: ['a.b'] } }, 'spec.sandbox.allowedHosts', "only with network: 'limited'"],
    [13, { sandbox: LIMITED_TO('10.0.0.1') }, 'spec.sandbox.allowedHosts.0', 'must be a name, not an address'],
    [13, { sandbox: LIMITED_TO('http://a.b/') }, 'spec.sandbox.allowedHosts.0', 'is not a host name'],
    [13, { approval: 'sometimes' }, 'spec.approval', "must be 'never', 'on-failure', 'on-request'"],
    [13, { approval: { reject: { all: true } } }, 'spec.approval.reject.all', 'unknown field'],
    [15, { approvalTimeoutMs: 0 }, 'spec.approvalTimeoutMs', 'must be 1 to 86400000 ms'],
    [66, { execPolicy: [{ pattern: [], decision: 'allow' }] }, 'spec.execPolicy.0.pattern', 'must hold a word'],
    [66, { execPolicy: [{ pattern: ['a'], decision: 'maybe' }] }, 'spec.execPolicy.0.decision', "must be 'allow'"],
    [42, { limits: { fileSizeBytes: 1 } }, 'spec.limits.fileSizeBytes', 'at least 16777216 bytes'],
    [75, { policy: { type: 'docker', runtime: '--privileged' } }, 'spec.policy.runtime', 'the name of a runtime'],
    [41, { policy: { type: 'codex', configOverrides: { 'a b': 1 } } }, 'spec.policy.configOverrides.a b', 'dotted key'],
    [35, { workspace: { path: '/a', target: '/etc' } }, 'spec.workspace.target', 'is a directory of the system'],
    [34, { cwd: 'image', workspace: '/srv/a' }, 'spec.cwd', 'where a workspace is mounted'],
    [34, { cwd: 'image', policy: 'host' }, 'spec.cwd', 'runs no image'],
    [35, { workspace: { path: 'a' } }, 'spec.workspace.path', 'must be an absolute path'],
  ])('is refused as case %i: %o', async (_row, spec, path, words) => {
    await expectRefusal(() => stack.fleet.session('never', spec as SessionSpec), 'SESSION_SPEC_INVALID', [
      [path, words],
    ]);
  });

  test.each([{ approvals: 'never' }, { execPolicies: [] }, { sandboxes: {} }])(
    'is refused when it has an unknown field: %o',
    async (spec) => {
      const field = `spec.${Object.keys(spec)[0]}`;
      await expectRefusal(() => stack.fleet.session('never', spec as SessionSpec), 'SESSION_SPEC_INVALID', [
        [field, 'unknown field'],
      ]);
    },
  );
});

describe('connecting to a fleet', () => {
  test.each([
    [{ namespace: 'a:b' }, 'namespace'],
    [{ namespace: '' }, 'namespace'],
    [{ tenant: '{x}' }, 'tenant'],
    [{ tenant: 'x'.repeat(129) }, 'tenant'],
    [{ redisURL: 'typo' }, 'redisURL'],
  ])('refuses the options %o', async (options, path) => {
    const refused = Fleet.connect({ redisUrl: stack.redisUrl, sealKeys: ['x'], ...options });
    await expect(refused).rejects.toMatchObject({ code: 'COMMAND_INVALID', context: { issues: [{ path }] } });
  });

  test('fails within 2 s where no Redis answers, and names the address', async () => {
    const began = performance.now();
    const sealKeys = [Buffer.alloc(32, 1).toString('base64')];
    await expect(Fleet.connect({ redisUrl: 'redis://127.0.0.1:1', sealKeys })).rejects.toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      retryable: true,
    });
    expect(performance.now() - began).toBeLessThan(2_500);
  });

  test.each(['redis://127.0.0.1:99999', 'not a url', 'http://127.0.0.1:6379'])(
    'refuses the address %j',
    async (redisUrl) => {
      const sealKeys = [Buffer.alloc(32, 1).toString('base64')];
      await expect(Fleet.connect({ redisUrl, sealKeys })).rejects.toMatchObject({ name: 'ShellfleetError' });
    },
  );
});

describe('a worker', () => {
  let worker: TestFleet;
  beforeAll(async () => {
    worker = await startFleet();
  });
  afterAll(() => worker?.[Symbol.asyncDispose]());

  test.each(['/no/such/dir', '/etc/passwd', '/root', '/workspace/line\nend'])(
    'ends a command with an error when the sandbox lacks its directory %j',
    async (cwd) => {
      const mine = await worker.fleet.session('cwd');
      const result = await mine.run('touch /tmp/ran', { cwd });
      expect(result).toMatchObject({
        outcome: 'error',
        exitCode: null,
        error: {
          code: 'COMMAND_INVALID',
          context: { issues: [{ path: 'cwd', message: 'no such directory in the sandbox' }] },
        },
      });
      expect(result.error?.message).toContain(cwd);
      expect((await mine.run('ls /tmp/ran; pwd')).stdout).toBe('/workspace\n');
    },
  );

  test('passes values of variables as bytes, never evaluated, in a command and in a session', async () => {
    const value = '\'"`id`$(id)\\\n  $HOME é😀 *';
    const mine = await worker.fleet.session('values', { env: { OF_SESSION: value } });
    const result = await mine.run('printf "%s|%s" "$OF_SESSION" "$OF_COMMAND"', { env: { OF_COMMAND: value } });
    expect(result.stdout).toBe(`${value}|${value}`);
  });

  // S1-62
  test('runs the largest allowed script, environment and stdin, and keeps the script’s deadline', async () => {
    const mine = await worker.fleet.session('largest');
    const script = `: ${'x'.repeat(MIB - 20)}\necho done`;
    expect(await mine.run(script)).toMatchObject({ outcome: 'success', stdout: 'done\n' });
    const sleeps = `${script.slice(0, MIB - 20)}\nsleep 60`;
    expect(await mine.run(sleeps, { timeoutMs: 1_000 })).toMatchObject({ outcome: 'timeout', reason: 'wall' });
    const env = Object.fromEntries(Array.from({ length: 7 }, (_, n) => [`V${n}`, 'x'.repeat(127 * KIB)]));
    expect(await mine.run('echo ${#V0} ${#V6}; cat | wc -c', { env, stdin: 'y'.repeat(MIB) })).toMatchObject({
      outcome: 'success',
      stdout: `${127 * KIB} ${127 * KIB}\n${MIB}\n`,
    });
  });
});
