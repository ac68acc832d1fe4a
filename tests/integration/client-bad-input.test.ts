import { type Fleet, isShellfleetError, type Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';

// Bad inputs, by their case numbers. Every refusal names the field and the limit, does not repeat the value, and leaves
// no key behind.

let stage: ClientStage;
let fleet: Fleet;
let session: Session;
beforeAll(async () => {
  stage = await setClientStage();
  fleet = await stage.connect();
  session = await fleet.session('s');
  // The session is written to the index after its opening.
  await session.info();
});
afterAll(() => stage[Symbol.asyncDispose]());

const any = (value: unknown) => value as never;
const MiB = 1_048_576;
const deep = () => {
  let value: unknown = 1;
  for (let depth = 0; depth < 10_000; depth++) value = { value };
  return value;
};

async function refused(attempt: () => Promise<unknown>, code: string, words: RegExp): Promise<void> {
  const before = await stage.keys();
  const error = await attempt().then(
    () => 'it was taken',
    (caught: unknown) => caught,
  );
  expect(isShellfleetError(error) ? { code: error.code, message: error.message } : error).toEqual({
    code,
    message: expect.stringMatching(words),
  });
  expect(await stage.keys()).toEqual(before);
}

const scripts: [row: string, script: unknown, words: RegExp][] = [
  ['1 missing', undefined, /script: must be a string/],
  ['1 null', null, /script: must be a string/],
  ['2 empty', '', /script: must not be empty/],
  ['2 only spaces and newlines', ' \n\t ', /script: must not be empty/],
  ['3 a number', 7, /script: must be a string/],
  ['3 a list', ['ls'], /script: must be a string/],
  ['6 with a NUL', 'echo a\0b', /script: holds a NUL byte at offset 6/],
  ['7 with a lone surrogate', 'echo \ud800', /script: is not valid Unicode/],
  ['8 a byte too long', 'x'.repeat(MiB + 1), /script: is 1048577 bytes; the limit is 1048576/],
  ['8 too long in bytes, not in characters', '€'.repeat(MiB / 2), /script: is 1572864 bytes/],
];
describe('the client', () => {
  test.each(scripts)('refuses a script, case %s', async (_row, script, words) => {
    await refused(() => session.submit(any(script)), 'COMMAND_INVALID', words);
    await refused(() => fleet.run(any(script)), 'COMMAND_INVALID', words);
  });

  const options: [row: string, options: unknown, words: RegExp][] = [
    ['4 restart beside a script', { restart: true }, /options\.restart: unknown field/],
    [
      '9 env beyond its total',
      { env: Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`A${i}`, 'x'.repeat(120_000)])) },
      /options\.env: is \d+ bytes in all; the limit is 1048576/,
    ],
    ['9 stdin of numbers', { stdin: new Uint16Array(2) }, /options\.stdin: must be a string, bytes/],
    [
      '9 stdin of a wrong type',
      { stdin: 5 },
      /options\.stdin: must be a string, bytes, an iterable of them, or { open: true }/,
    ],
    [
      '9 stdin that could not be read again',
      { stdin: new Uint8Array(MiB + 1), retry: 'idempotent' },
      /options\.stdin: cannot be read a second time/,
    ],
    ['10 nested 10,000 deep', { env: deep() }, /options\.env\.value: must be a string/],
    [
      '12 __proto__',
      JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}'),
      /options\.(__proto__|constructor): unknown field/,
    ],
    ['13 an unknown field', { timeout: 5 }, /options\.timeout: unknown field/],
    ['14 NaN', { timeoutMs: Number.NaN }, /options\.timeoutMs/],
    ['14 Infinity', { timeoutMs: Number.POSITIVE_INFINITY }, /options\.timeoutMs/],
    ['14 a string', { timeoutMs: '30' }, /options\.timeoutMs: must be a number of milliseconds/],
    ['14 true', { timeoutMs: true }, /options\.timeoutMs/],
    ['15 zero', { timeoutMs: 0 }, /options\.timeoutMs: must be 1 to 86400000 ms/],
    ['15 negative', { timeoutMs: -1 }, /options\.timeoutMs: must be 1 to 86400000 ms/],
    ['15 a fraction', { timeoutMs: 0.0001 }, /options\.timeoutMs: must be a whole number/],
    ['15 above the most', { noOutputTimeoutMs: 86_400_001 }, /options\.noOutputTimeoutMs: must be 1 to 86400000 ms/],
    ['16 above 2^31-1', { timeoutMs: 2 ** 31 }, /options\.timeoutMs: must be 1 to 86400000 ms/],
    [
      '28 an idempotency key of 1 KiB',
      { idempotencyKey: 'k'.repeat(1_024) },
      /options\.idempotencyKey: must be at most 256 characters/,
    ],
    [
      '28 an idempotency key outside ASCII',
      { idempotencyKey: 'schlüssel' },
      /options\.idempotencyKey: may only hold visible ASCII/,
    ],
    ['29 an env name with =', { env: { 'A=B': 'x' } }, /options\.env\.A=B: is not a variable name/],
    ['29 an empty env name', { env: { '': 'x' } }, /is not a variable name/],
    ['29 an env name with a space', { env: { 'A B': 'x' } }, /is not a variable name/],
    ['29 an env name with a newline', { env: { 'A\nB': 'x' } }, /is not a variable name/],
    ['29 an env name that begins with a digit', { env: { '1A': 'x' } }, /is not a variable name/],
    ['30 an env value that is an object', { env: { A: {} } }, /options\.env\.A: must be a string/],
    ['32 an env value with a NUL', { env: { A: 'x\0' } }, /options\.env\.A: holds a NUL byte at offset 1/],
    [
      '32 an env value beyond its limit',
      { env: { A: 'x'.repeat(131_073) } },
      /options\.env\.A: is 131073 bytes; the limit is 131072/,
    ],
    ...['LD_PRELOAD', 'BASH_ENV', 'ENV', 'PROMPT_COMMAND', 'SHELLOPTS', 'PS4', 'IFS', 'DOCKER_HOST'].map(
      (name): [string, unknown, RegExp] => [
        `33 ${name}`,
        { env: { [name]: 'x' } },
        new RegExp(`options\\.env\\.${name}: would change`),
      ],
    ),
    ['34 a relative cwd', { cwd: 'work' }, /options\.cwd: must be an absolute path/],
    ['34 a cwd that climbs', { cwd: '../..' }, /options\.cwd: must be an absolute path/],
    ['34 a cwd of home', { cwd: '~' }, /options\.cwd: must be an absolute path/],
    [
      'open stdin that could not be read again',
      { stdin: { open: true }, retry: 'idempotent' },
      /cannot be read a second time/,
    ],
    ['a stream behind an idempotency key', { stdin: [], idempotencyKey: 'k' }, /options\.stdin: of unknown content/],
    ['an escalation without a reason', { escalate: {} }, /options\.escalate\.justification: must be a string/],
  ];
  test.each(options)('refuses an option, case %s', async (_row, given, words) => {
    await refused(() => session.submit('true', any(given)), 'COMMAND_INVALID', words);
    await refused(() => fleet.run('true', any(given)), 'COMMAND_INVALID', words);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test.each([
    ['19 missing', undefined],
    ['19 empty', ''],
    ['19 spaces', '  '],
    ...[':', '{}', '*', '?', '\n', '\0', '/', '\r\n', 'ä', 'a\u0308'].map((part): [string, unknown] => [
      `20 with ${JSON.stringify(part)}`,
      `a${part}b`,
    ]),
    ['21 of 129 characters', 'a'.repeat(129)],
    ['21 of 5 MB', 'a'.repeat(5_000_000)],
  ])('refuses a session id, case %s', async (_row, id) => {
    await refused(() => fleet.session(any(id)), 'SESSION_SPEC_INVALID', /^.{0,300}$/s);
    await refused(() => fleet.attach(any(id)), 'SESSION_SPEC_INVALID', /id: /);
  });

  test.each(['__proto__', 'constructor', 'toString', '123', '..', 'Abc', 'abc'])(
    'accepts the session id %s',
    async (id) => {
      const taken = await fleet.session(id);
      expect((await taken.info()).id).toBe(id);
    },
  );

  test('hides the sessions of another tenant', async () => {
    await fleet.session('mine');
    const other = await stage.connect({ tenant: 'other' });
    expect(await other.attach('mine')).toBeUndefined();
    const command = await session.submit('true');
    await expect(other.command(command.id)).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
    expect(await Array.fromAsync(other.sessions())).toEqual([]);
  });

  const specs: [row: string, spec: unknown, words: RegExp][] = [
    ['17 no lines of output', { output: { maxLines: 0 } }, /spec\.output\.maxLines: must be positive/],
    ['18 no bytes of output', { output: { maxBytes: 0 } }, /spec\.output\.maxBytes: must be positive/],
    ['18 a fraction of a byte', { output: { maxBytes: 1.5 } }, /spec\.output\.maxBytes: must be a whole number/],
    ['29 an env name', { env: { '1A': 'x' } }, /spec\.env\.1A: is not a variable name/],
    ['34 a relative cwd', { cwd: 'work' }, /spec\.cwd: must be an absolute path/],
    ...['a b', '--privileged', 'a;b', '', 'UPPER', 'a@sha256:12'].map((image): [string, unknown, RegExp] => [
      `40 image ${image}`,
      { image },
      /spec\.image: is not an image name/,
    ]),
    ['41 binds', { binds: ['/:/host'] }, /spec\.binds: unknown field/],
    ['41 privileged', { limits: { privileged: true } }, /spec\.limits\.privileged: unknown field/],
    [
      '42 memory as words',
      { limits: { memoryBytes: '512mb!' } },
      /spec\.limits\.memoryBytes: must be a number of bytes/,
    ],
    ['42 4 MB of memory', { limits: { memoryBytes: 4_000_000 } }, /spec\.limits\.memoryBytes: must be at least/],
    ['43 no cpus', { limits: { cpus: 0 } }, /spec\.limits\.cpus: must be at least/],
    ['43 a billion cpus', { limits: { cpus: 1e9 } }, /spec\.limits\.cpus: must be at most/],
    ['44 an empty user', { user: '' }, /spec\.user: must be a non-empty string/],
    ['44 a user that is a command', { user: 'x;y' }, /spec\.user: is not a user/],
    ['an unknown policy', { policy: 'podman' }, /spec\.policy/],
    [
      'one name for a secret and a variable',
      { env: { A: 'y' }, secrets: { A: 'x' } },
      /spec\.secrets\.A: is in env as well/,
    ],
    [
      'an unknown strategy of redaction',
      { redaction: [{ type: 'x', strategy: 'hide' }] },
      /redaction\.0\.strategy: must be/,
    ],
  ];
  test.each(specs)('refuses a session spec, case %s', async (_row, spec, words) => {
    await refused(() => fleet.session('new', any(spec)), 'SESSION_SPEC_INVALID', words);
    await refused(() => fleet.run('true', { spec: any(spec) }), 'SESSION_SPEC_INVALID', words);
  });

  test.each(['../../etc/passwd', 'a/../../b', '..\\x', '%2e%2e', '', '~/x', 'x\0', `/${'x'.repeat(4_096)}`])(
    'refuses the path %j',
    async (path) => {
      const { files } = session;
      for (const attempt of [
        () => files.read(path),
        () => files.write(path, 'x'),
        () => files.list(path),
        () => files.remove(path),
        () => files.upload('/etc/hostname', path),
        () => files.download(path, '/nonexistent/x'),
      ]) {
        await refused(attempt, 'PATH_INVALID', /^The path /);
      }
    },
  );

  test('refuses to upload a missing local file before it sends anything', async () => {
    await refused(
      () => session.files.upload('/nonexistent/file', '/workspace/x'),
      'FILE_NOT_FOUND',
      /\/nonexistent\/file/,
    );
  });

  test.each(['$', 'garbage', '', '1', '-', '1-1 ', '99999999999999999999-0'])(
    'refuses the position %j',
    async (after) => {
      const command = await session.submit('true');
      expect(() => command.output({ after })).toThrow(/after: must be the id of a chunk/);
      expect(() => session.events({ after })).toThrow(/after: must be the id of a chunk/);
    },
  );

  test('tells an unknown command from a malformed command id', async () => {
    await refused(
      () => fleet.command('s.01ARZ3NDEKTSV4RRFFQ69G5FAV'),
      'RESULT_EXPIRED',
      /s\.01ARZ3NDEKTSV4RRFFQ69G5FAV/,
    );
    for (const id of ['', 'x', 's.', 's.01', 'a:b.01ARZ3NDEKTSV4RRFFQ69G5FAV', any(7)]) {
      await refused(() => fleet.command(id), 'COMMAND_INVALID', /is not a command id/);
    }
  });

  test('ends invalid tasks of a batch as errors, and writes nothing', async () => {
    const before = await stage.keys();
    const tasks = [
      null,
      null,
      5,
      'x',
      [],
      {},
      { id: 'a' },
      { id: 'b', script: '' },
      { id: 'c', script: 'true', typo: 1 },
    ];
    const results = await Array.fromAsync(fleet.batch(any(tasks)));
    expect(results.map(({ outcome, error }) => [outcome, error?.code])).toEqual(
      tasks.map(() => ['error', 'COMMAND_INVALID']),
    );
    expect(await stage.keys()).toEqual(before);
  });

  test('writes nothing when it attaches to an unknown session', async () => {
    const before = await stage.keys();
    expect(await fleet.attach('never')).toBeUndefined();
    expect(await stage.keys()).toEqual(before);
  });

  test('refuses to connect with names that cannot be part of a key', async () => {
    for (const options of [{ namespace: 'a:b' }, { tenant: '{x}' }, { namespace: '' }, any({ urls: 1 })]) {
      await refused(() => stage.connect(options), 'COMMAND_INVALID', /Fleet\.connect is not valid/);
    }
  });
});
