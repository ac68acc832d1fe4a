import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { until } from '../support/until.ts';

// S3-30: file operations and tool calls are decided as words, on hosts whose operator has rules about them.

const RULES = `
rules:
  - { pattern: [[files.write, files.remove], /workspace/kept], decision: forbid, justification: The auditor reads it. }
  - { pattern: [files.read, /workspace/hidden], decision: forbid }
  - { pattern: [files.mkdir, /workspace/asked], decision: prompt }
  - { pattern: [tool, mark], decision: prompt }
  - { pattern: [tool, echo], decision: forbid, justification: It echoes. }
`;
const directory = mkdtempSync(join(tmpdir(), 'sf-file-rules-'));
let stack: TestFleet;
let ids = 0;
const open = (spec = {}) => stack.fleet.session(`files-${++ids}`, spec);

beforeAll(async () => {
  writeFileSync(join(directory, 'rules.yaml'), RULES);
  writeFileSync(join(directory, 'config.yaml'), `rules: [${join(directory, 'rules.yaml')}]\n`);
  const SHELLFLEET_CONFIG = join(directory, 'config.yaml');
  stack = await startFleet({
    workers: 2,
    slots: 20,
    env: { SHELLFLEET_CONFIG, SHELLFLEET_TOOLS: toolModules('everyday') },
  });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

const KEPT = 'The rule `files.write|files.remove /workspace/kept` forbids';

describe('rules about files and tools', () => {
  test.each([{ ordered: false }, { ordered: true }])(
    'deny an operation that they forbid, with rule and justification: %j',
    async ({ ordered }) => {
      const { files } = await open();
      const denied = (what: string) => ({
        code: 'FILE_DENIED',
        message: expect.stringContaining(`${KEPT} \`${what}\`. The auditor reads it.`),
      });
      await expect(files.write('/workspace/kept/a', 'a', { ordered })).rejects.toMatchObject(
        denied('files.write /workspace/kept/a'),
      );
      await expect(files.remove('/workspace', { ordered })).rejects.toMatchObject(denied('files.remove /workspace'));
      await files.write('/workspace/a', 'a', { ordered });
      await expect(files.rename('/workspace/a', '/workspace/b/../kept', { ordered })).rejects.toMatchObject(
        denied('files.rename /workspace/a /workspace/kept'),
      );
      expect(await files.readText('/workspace/a', { ordered })).toBe('a');
      expect((await files.list('/workspace', { ordered })).map(({ name }) => name)).toEqual(['a']);
    },
  );

  test('decide which outputs of a batch leave as they are, with the secrets in them', async () => {
    const local = join(directory, 'outputs', '{id}');
    const outputs = { '/workspace/open': join(local, 'open'), '/workspace/hidden': join(local, 'hidden') };
    const script = 'mkdir hidden; echo $TOKEN | tee open hidden/a';
    const batch = stack.fleet.batch([{ id: 'a', script, outputs, spec: { secrets: { TOKEN: 'planted-secret' } } }]);
    const [result] = await Array.fromAsync(batch);
    const place = join(directory, 'outputs', 'a');
    expect(result).toMatchObject({
      ...{ passed: true, results: [{ stdout: '[REDACTED_SECRET]\n' }] },
      outputs: {
        '/workspace/open': { path: join(place, 'open') },
        '/workspace/hidden': { error: { code: 'FILE_DENIED' } },
      },
    });
    expect(readFileSync(join(place, 'open'), 'utf8')).toBe('planted-secret\n');
    expect(existsSync(join(place, 'hidden'))).toBe(false);
  });

  test('deny an upload’s whole group of files when they forbid one of them', async () => {
    const { files } = await open();
    const local = join(directory, 'tree');
    mkdirSync(join(local, 'kept'), { recursive: true });
    writeFileSync(join(local, 'kept', 'a'), 'a');
    await expect(files.upload(local, '/workspace')).rejects.toMatchObject({
      code: 'FILE_DENIED',
      message: expect.stringContaining(`${KEPT} \`files.write /workspace/kept/a\``),
    });
    expect(await files.list('/workspace')).toEqual([]);
  });

  test('keep a forbidden tool from being called, and allow another one', async () => {
    expect(await stack.fleet.tools.call('echo', {})).toMatchObject({
      error: {
        code: 'denied',
        message: expect.stringContaining('The rule `tool echo` forbids `tool echo`. It echoes.'),
      },
    });
    expect(await stack.fleet.tools.call('add', { a: 1, b: 2 })).toMatchObject({ ok: true, output: { sum: 3 } });
  });

  test.each([{ ordered: false }, { ordered: true }])(
    'hold for a path that goes through a link: %j',
    async ({ ordered }) => {
      const { files, run } = await open().then((session) => ({ files: session.files, run: session.run.bind(session) }));
      await run('mkdir kept hidden; echo secret > hidden/a; ln -s kept way; ln -s hidden look; ln -s hidden/a one');
      const refused = { code: 'PATH_INVALID', message: expect.stringContaining('symbolic link') };
      await expect(files.write('/workspace/way/a', 'a', { ordered })).rejects.toMatchObject(refused);
      await expect(files.readText('/workspace/look/a', { ordered })).rejects.toMatchObject(refused);
      await expect(files.readText('/workspace/one', { ordered })).rejects.toMatchObject(refused);
      await expect(files.list('/workspace/look', { ordered })).rejects.toMatchObject(refused);
      expect(await run('ls kept')).toMatchObject({ stdout: '' });
    },
  );

  const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');
  const questionsOf = (sessionId: string) => stack.fleet.approvals.list({ sessionId });
  const asked = async (sessionId: string) =>
    (
      await until(
        () => questionsOf(sessionId),
        ({ length }) => length > 0,
      )
    )[0]!;
  const openAsking = (spec = {}) => open({ approval: 'unless-trusted', ...spec });

  test('ask a person about a write, with path, size and digest, while others go on', async () => {
    const session = await openAsking();
    await session.run('true');
    const told: unknown[] = [];
    const written = session.files.write('/workspace/a', 'abc', { onApproval: (question) => told.push(question) });
    const question = await asked(session.id);
    expect(question).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{20}\.[0-9a-f]{12}$/),
      state: 'pending',
      sessionId: session.id,
      commandId: expect.stringContaining(session.id),
      script: 'files.write /workspace/a',
      reason: '`files.write /workspace/a` is not known to be safe, and no rule allows it.',
      place: expect.stringContaining('policy docker'),
      env: [],
      content: { files: 1, bytes: 3, sha256: sha256('abc') },
      covers: { pattern: ['files.write', '/workspace'], under: expect.any(String) },
      amendment: { pattern: ['files.write', '/workspace'], decision: 'allow' },
      count: 1,
      askedAt: expect.any(String),
      expiresAt: expect.any(String),
    });
    const { id, reason, expiresAt } = question;
    await until(
      () => told,
      ({ length }) => length > 0,
    );
    expect(told).toEqual([{ id, reason, expiresAt }]);
    expect(await session.files.list('/workspace')).toEqual([]);
    expect(await session.run('ls /workspace')).toMatchObject({ outcome: 'success', stdout: '' });
    await stack.fleet.approvals.approve(question.id);
    await written;
    expect(await session.files.readText('/workspace/a')).toBe('abc');
  });

  test('ask again when other bytes than the approved ones are written to the same path', async () => {
    const session = await openAsking();
    const first = session.files.write('/workspace/a', 'one');
    await stack.fleet.approvals.approve((await asked(session.id)).id);
    await first;
    const second = session.files.write('/workspace/a', 'two');
    second.catch(() => {});
    const question = await asked(session.id);
    expect(question.content?.sha256).toBe(sha256('two'));
    await stack.fleet.approvals.deny(question.id, 'no', { answeredBy: 'ada' });
    await expect(second).rejects.toMatchObject({
      code: 'FILE_DENIED',
      message: expect.stringContaining('ada denied it: no'),
    });
    expect(await session.files.readText('/workspace/a')).toBe('one');
  });

  test('ask one question about all parts of a file, and refuse other parts', async () => {
    const session = await openAsking();
    const data = randomBytes(1_300_000);
    const written = session.files.write('/workspace/large', data);
    const question = await asked(session.id);
    expect(question.content).toEqual({ files: 1, bytes: data.byteLength, sha256: sha256(data) });
    await stack.fleet.approvals.approve(question.id);
    await written;
    expect(Buffer.from(await session.files.read('/workspace/large')).equals(data)).toBe(true);
    // The file has other content when its later parts are read.
    const changing = join(directory, 'changing');
    writeFileSync(changing, Buffer.alloc(6_000_000, 'a'));
    const uploaded = session.files.upload(changing, '/workspace/changed');
    const refused = expect(uploaded).rejects.toMatchObject({
      code: 'FILE_DENIED',
      message: expect.stringContaining('what a person was asked about is 6000000 bytes'),
    });
    const about = await asked(session.id);
    writeFileSync(changing, Buffer.alloc(6_000_000, 'x'));
    await stack.fleet.approvals.approve(about.id);
    await refused;
    expect(await session.files.list('/workspace/*')).toMatchObject([{ name: 'large' }]);
  });

  test('ask once for a directory in a session, and again for other directories and sessions', async () => {
    const session = await openAsking();
    const writes = Array.from({ length: 200 }, (_, index) =>
      session.files.write(`/workspace/out/${index}`, `${index}`),
    );
    const question = await asked(session.id);
    expect(question.covers?.pattern).toEqual(['files.write', '/workspace/out']);
    await stack.fleet.approvals.approve(question.id, { scope: 'session' });
    await Promise.all(writes);
    expect(await session.run('ls /workspace/out | wc -l')).toMatchObject({ stdout: '200\n' });
    const others = await openAsking();
    const denied = (written: Promise<void>) => expect(written).rejects.toMatchObject({ code: 'FILE_DENIED' });
    const away = [
      denied(session.files.write('/workspace/out/../x', '')),
      denied(others.files.write('/workspace/out/x', '')),
    ];
    for (const { id } of [session, others]) await stack.fleet.approvals.deny((await asked(id)).id);
    await Promise.all(away);
    await stack.fleet.approvals.revoke(question.id);
    const after = denied(session.files.write('/workspace/out/y', ''));
    await stack.fleet.approvals.deny((await asked(session.id)).id);
    await after;
  });

  test('do not extend an approval of a directory through a link in it', async () => {
    const session = await openAsking({ execPolicy: [{ pattern: [['mkdir', 'ln', 'ls']], decision: 'allow' }] });
    await session.run('mkdir /workspace/out; ln -s /tmp /workspace/out/away');
    const written = session.files.write('/workspace/out/a', 'a');
    await stack.fleet.approvals.approve((await asked(session.id)).id, { scope: 'session' });
    await written;
    await expect(session.files.write('/workspace/out/away/b', 'b')).rejects.toMatchObject({ code: 'PATH_INVALID' });
    expect(await session.run('ls /tmp')).toMatchObject({ outcome: 'success', stdout: '' });
  });

  test('ask once for each group of an uploaded directory, with number and size of files', async () => {
    const session = await openAsking();
    const local = join(directory, 'site');
    mkdirSync(local);
    writeFileSync(join(local, 'a'), 'aa');
    writeFileSync(join(local, 'b'), 'b');
    const uploaded = session.files.upload(local, '/workspace/site');
    const question = await asked(session.id);
    expect(question.script.split('\n').sort()).toEqual([
      'files.mkdir /workspace/site',
      'files.write /workspace/site/a',
      'files.write /workspace/site/b',
    ]);
    expect(question).toMatchObject({
      content: { files: 2, bytes: 3 },
      covers: { pattern: [['files.mkdir', 'files.write'], '/workspace/site'] },
    });
    await stack.fleet.approvals.approve(question.id, { scope: 'session' });
    await uploaded;
    writeFileSync(join(local, 'a'), 'changed');
    await session.files.upload(local, '/workspace/site');
    expect(await session.files.readText('/workspace/site/a')).toBe('changed');
  });

  test('let an unanswered question expire, and withdraw one whose caller has left', async () => {
    const session = await openAsking({ approvalTimeoutMs: 300 });
    await expect(session.files.remove('/workspace/a')).rejects.toMatchObject({ code: 'APPROVAL_EXPIRED' });
    const waits = await openAsking();
    const stop = new AbortController();
    const written = waits.files.write('/workspace/a', 'a', { signal: stop.signal });
    await asked(waits.id);
    stop.abort(new Error('gave up'));
    await expect(written).rejects.toThrow('gave up');
    expect(await questionsOf(waits.id)).toEqual([]);
  });

  test('keep a waiting write over the worker’s end, and write it once approved', async () => {
    const session = await openAsking();
    await session.run('true');
    const written = session.files.write('/workspace/a', 'survived');
    const question = await asked(session.id);
    const host = (await session.info()).hostId;
    const worker = stack.workers.find(({ hostId }) => hostId === host)!;
    await worker.kill();
    await stack.fleet.approvals.approve(question.id);
    await worker.start();
    await written;
    expect(await session.files.readText('/workspace/a')).toBe('survived');
  });

  test('ask a person also about an ordered operation', async () => {
    const session = await open();
    const made = session.files.mkdir('/workspace/asked/a', { ordered: true });
    const question = await asked(session.id);
    expect(question).toMatchObject({
      script: 'files.mkdir /workspace/asked/a',
      reason: 'The rule `files.mkdir /workspace/asked` asks about `files.mkdir /workspace/asked/a`.',
      covers: { pattern: ['files.mkdir', '/workspace/asked'] },
    });
    expect(question.amendment).toBeUndefined();
    await stack.fleet.approvals.approve(question.id, { scope: 'session' });
    await made;
    await session.files.mkdir('/workspace/asked/b');
    expect(await questionsOf(session.id)).toEqual([]);
  });

  test('make `cp` report on stderr that it waits; `approvals ls` shows the operation', async () => {
    const session = await openAsking();
    const local = join(directory, 'one');
    writeFileSync(local, 'abc');
    const cli = new FleetCli(stack);
    const copied = cli.run(['cp', local, `${session.id}:/workspace/one`]);
    const question = await Promise.race([
      asked(session.id),
      copied.then((run) => Promise.reject(new Error(run.stderr))),
    ]);
    const listed = await cli.run(['approvals', 'ls']);
    expect(listed.stdout.toString()).toContain('files.write /workspace/one');
    await stack.fleet.approvals.approve(question.id);
    expect(await copied).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(`waits for an approval (${question.id}`),
    });
  });

  const askedAbout = async (name: string) =>
    (
      await until(
        async () => (await stack.fleet.approvals.list()).filter(({ tool }) => tool === name),
        ({ length }) => length > 0,
      )
    )[0]!;

  test('let a call run once it was approved, with the arguments that were shown', async () => {
    const told: string[] = [];
    const options = { callId: 'mine', onApproval: () => told.push('asks') };
    const called = stack.fleet.tools.call('mark', { path: join(directory, 'marks'), id: 'a' }, options);
    const question = await askedAbout('mark');
    const args = JSON.stringify({ path: join(directory, 'marks'), id: 'a' });
    expect(question).toMatchObject({
      ...{ sessionId: '', script: `tool mark ${args}`, reason: 'The rule `tool mark` asks about `tool mark`.' },
      stdin: { bytes: args.length, sha256: sha256(args) },
    });
    expect(existsSync(join(directory, 'marks'))).toBe(false);
    await stack.fleet.approvals.approve(question.id);
    expect(await called).toMatchObject({ ok: true, output: 'a', callId: 'mine' });
    expect([told, readFileSync(join(directory, 'marks'), 'utf8')]).toEqual([['asks'], 'begin a\nend a\n']);
  });

  test('keep a call that is denied, expires or loses its caller from running', async () => {
    const call = (options = {}) => stack.fleet.tools.call('mark', { path: join(directory, 'never'), id: 'b' }, options);
    const denied = call();
    await stack.fleet.approvals.deny((await askedAbout('mark')).id, 'no', { answeredBy: 'ada' });
    expect(await denied).toMatchObject({
      error: { code: 'denied', message: expect.stringContaining('ada denied it: no') },
    });
    expect(await call({ approvalTimeoutMs: 300 })).toMatchObject({ error: { code: 'approval-expired' } });
    const stop = new AbortController();
    const stopped = call({ signal: stop.signal });
    const gaveUp = expect(stopped).rejects.toThrow('gave up');
    await askedAbout('mark');
    stop.abort(new Error('gave up'));
    await gaveUp;
    expect((await stack.fleet.approvals.list()).filter(({ tool }) => tool === 'mark')).toEqual([]);
    expect(existsSync(join(directory, 'never'))).toBe(false);
  });
});
