import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { Command, Fleet } from '@shellfleet/client';
import { readSealedSpec, submit, writeInput } from '@shellfleet/mailbox';
import {
  type AuditEvent,
  commandPayloadSchema,
  encodeWakeUp,
  payloadKey,
  recordKey,
  sessionKeys,
  sessionSpecSchema,
} from '@shellfleet/protocol';
import { openRedis, parseRedisUrl } from '@shellfleet/redis';
import { auditKeys, createSealer, createSigner, sealPlace, verifyAudit } from '@shellfleet/sealing';
import { ulid } from 'ulid';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { until } from '../support/until.ts';

// One host that runs only signed entries. The forger has the seal key and may write anything to Redis.

const directory = mkdtempSync(join(tmpdir(), 'sf-signed-'));
const config = join(directory, 'config.yaml');
const producer = generateKeyPairSync('ed25519');
const older = generateKeyPairSync('ed25519');
const approver = generateKeyPairSync('ed25519');
const stranger = generateKeyPairSync('ed25519');
const publicOf = ({ publicKey }: { publicKey: KeyObject }) =>
  publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
const privateOf = ({ privateKey }: { privateKey: KeyObject }) =>
  privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();

let stack: TestFleet;
let signed: Fleet;
let redis: ReturnType<typeof openRedis>;
let ids = 0;
const nextId = () => `signed-${++ids}`;

beforeAll(async () => {
  writeFileSync(
    config,
    `keys:
  producers:
    - { id: ci, tenants: [default], publicKey: ${publicOf(older)} }
    - { id: ci, tenants: [default], publicKey: ${publicOf(producer)} }
  approvers:
    - { id: ada, tenants: [default], publicKey: ${publicOf(approver)} }
`,
  );
  stack = await startFleet({ env: { SHELLFLEET_CONFIG: config, SHELLFLEET_TOOLS: toolModules('everyday') } });
  signed = await stack.connect({ signingKey: privateOf(producer) });
  redis = openRedis(parseRedisUrl(stack.redisUrl), 'producer', 'forger');
});
afterAll(async () => {
  redis?.disconnect();
  await stack?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

const UNAUTHORIZED = { outcome: 'error', error: { code: 'UNAUTHORIZED', retryable: false } };

/** Returns the host's audit events about one session. */
function audited(session: string): AuditEvent[] {
  return auditedAll().filter((event) => 'session' in event && event.session === session);
}

/** Returns the host's audit events, verified with the seal key. */
function auditedAll(): AuditEvent[] {
  const events: AuditEvent[] = [];
  const [host = ''] = readdirSync(join(stack.stateDirectory, 'hosts'));
  const audit = join(stack.stateDirectory, 'hosts', host, 'audit');
  // The host has not written an audit yet.
  if (!existsSync(join(audit, 't-default'))) return [];
  const names = readdirSync(join(audit, 't-default')).sort();
  const segments = names.map((name) => ({ name, text: readFileSync(join(audit, 't-default', name), 'utf8') }));
  const keys = auditKeys([stack.sealKey], { namespace: stack.keyspace, host: 'h1', tenant: 'default' });
  expect(verifyAudit(segments, keys, [], ({ event }) => events.push(event)).findings).toEqual([]);
  return events;
}
const problemsOf = (session: string) =>
  audited(session).flatMap((event) => (event.type === 'unauthorized' ? `${event.kind}: ${event.problem}` : []));

describe('a detached batch', () => {
  test('ends with UNAUTHORIZED, because its worker cannot sign for the submitter', async () => {
    await stack.fleet.batches.submit([{ id: 'a', script: 'true' }], { name: 'unsigned' });
    const ended = await until(
      () => stack.fleet.batches.get('unsigned'),
      ({ state }) => state === 'ended',
    );
    expect(ended).toMatchObject({ results: 0, error: { code: 'UNAUTHORIZED' } });
  });
});

describe('signatures', () => {
  test('let a known submitter run everything with each key, and are in the audit', async () => {
    const id = nextId();
    const session = await signed.session(id, { env: { A: 'a' } });
    expect(await session.run('echo $A')).toMatchObject({ outcome: 'success', stdout: 'a\n' });
    const command = await session.submit('cat', { stdin: { open: true } });
    await command.write('typed');
    await command.closeStdin();
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'typed' });
    const streamed = session.run('cat', { stdin: Readable.from(['in ', 'two']) });
    expect(await streamed).toMatchObject({ outcome: 'success', stdout: 'in two' });
    await session.files.write('/tmp/a', 'beside');
    await session.files.write('/tmp/b', 'in order', { ordered: true });
    expect(await session.run('cat /tmp/a /tmp/b')).toMatchObject({ stdout: 'besidein order' });
    await session.restart();
    await using before = await stack.connect({ signingKey: privateOf(older) });
    expect(await (await before.session(id)).run('echo again')).toMatchObject({ stdout: 'again\n' });
    const events = await until(
      () => audited(id),
      (found) => found.filter(({ type }) => type === 'end').length === 8,
    );
    expect(events.filter(({ type }) => type === 'unauthorized')).toEqual([]);
    expect(events.find(({ type }) => type === 'submission')).toMatchObject({ script: 'echo $A', producer: 'ci' });
    await session.close();
  });

  test('are required: a session without one runs nothing, and reports what is missing', async () => {
    const id = nextId();
    const result = await (await stack.fleet.session(id)).run('echo no');
    expect(result).toMatchObject({ ...UNAUTHORIZED, stdout: '' });
    expect(result).toMatchObject({ error: { message: expect.stringContaining('SHELLFLEET_SIGNING_KEY') } });
    expect(problemsOf(id)).toContain('spec: it is not signed');
  });

  test('bind an entry to its place: other entries in the mailbox do not run', async () => {
    const id = nextId();
    const keys = sessionKeys(stack.keyspace, 'default', id);
    const session = await signed.session(id);
    expect(await session.run('echo first > /tmp/ran')).toMatchObject({ outcome: 'success' });
    const found = await readSealedSpec(redis, keys);
    const { generation = '' } = found ?? {};
    const spec = sessionSpecSchema.parse({});
    const payload = commandPayloadSchema.parse({
      type: 'command',
      script: 'echo forged >> /tmp/ran',
      timeoutMs: 60_000,
      encoding: 'utf8',
    });
    const write = async (key: { privateKey: KeyObject } | undefined, validForMs: number, of = spec) => {
      const signer = key && createSigner(key.privateKey, () => validForMs);
      const entryId = ulid();
      const place = { id: entryId, generation, retry: 'never' as const, inbox: '' };
      const sealed = createSealer([stack.sealKey], { signer }).seal(
        JSON.stringify(payload),
        sealPlace('payload', keys, { ...place, spec: of }),
      );
      return { entryId, sealed };
    };
    const put = async ({ entryId, sealed }: { entryId: string; sealed: string }) => {
      await submit(redis, keys, {
        ...{ entryId, generation, kind: 'command', payload: sealed, payloadHash: '', inbox: '', retry: 'never' },
      });
      // This command wakes the host and runs after the forged entry.
      expect(await session.run('cat /tmp/ran')).toMatchObject({ stdout: 'first\n' });
      return signed.command(`${id}.${entryId}`).then((command) => command.result());
    };
    const HOUR_MS = 3_600_000;
    const genuine = await write(producer, HOUR_MS);
    const other = await write(producer, HOUR_MS);
    const cases: [{ entryId: string; sealed: string }, string][] = [
      [await write(undefined, HOUR_MS), 'payload: it is not signed'],
      [await write(stranger, HOUR_MS), 'is not known'],
      [await write(approver, HOUR_MS), 'is not known'],
      [await write(producer, -1), 'payload: the signature by ci has expired'],
      [
        await write(producer, HOUR_MS, sessionSpecSchema.parse({ image: 'other' })),
        'is not of this value in this place',
      ],
      [{ ...other, sealed: genuine.sealed }, 'stands in another place'],
    ];
    for (const [entry, problem] of cases) {
      expect(await put(entry)).toMatchObject({ ...UNAUTHORIZED, stdout: '' });
      // The audit has the problem before the client receives it.
      expect(problemsOf(id).at(-1)).toContain(problem);
    }
    await session.close();
  });

  test('let only an approver answer and revoke, and not the submitting key', async () => {
    const session = await signed.session(nextId(), { approval: 'unless-trusted' });
    const command = await session.submit('touch /tmp/approved');
    const pending = () => signed.approvals.list({ sessionId: session.id });
    const [question] = await until(pending, (found) => found.length === 1);
    const { id = '' } = question ?? {};
    await using ada = await stack.connect({ signingKey: privateOf(approver) });
    await expect(stack.fleet.approvals.approve(id)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    await expect(signed.approvals.approve(id)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    // The answer is on disk before the client receives it.
    expect(
      auditedAll().flatMap((event) => ('kind' in event && event.kind === 'approval-answer' ? [event] : [])),
    ).toEqual([
      expect.objectContaining({ type: 'unauthorized', problem: 'it is not signed' }),
      expect.objectContaining({ type: 'unauthorized', problem: expect.stringMatching(/is not known$/) }),
    ]);
    expect(await pending()).toHaveLength(1);
    await ada.approvals.approve(id, { scope: 'session' });
    expect(await command.result()).toMatchObject({ outcome: 'success' });
    await expect(signed.approvals.revoke(id)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    expect(await session.run('touch /tmp/approved')).toMatchObject({ outcome: 'success' });
    await ada.approvals.revoke(id);
    await expect(ada.approvals.revoke(id)).rejects.toMatchObject({ code: 'APPROVAL_NOT_FOUND' });
    const after = await session.submit('touch /tmp/approved');
    expect(await until(pending, (found) => found.length === 1)).not.toMatchObject([{ id }]);
    await after.cancel();
    await session.close();
  });

  test('do not let a command run again from the mailbox, even by another process', async () => {
    const id = nextId();
    const keys = sessionKeys(stack.keyspace, 'default', id);
    const session = await signed.session(id);
    const command = await session.submit('echo once >> /tmp/ran; until [ -e /tmp/go ]; do sleep 0.05; done');
    const entryId = command.id.slice(id.length + 1);
    const record = await until(
      () => redis.hgetall(recordKey(keys, entryId)),
      ({ state }) => state === 'running',
    );
    const payload = (await redis.get(payloadKey(keys, entryId))) ?? '';
    await session.files.write('/tmp/go', '');
    expect(await command.result()).toMatchObject({ outcome: 'success' });
    const { generation = '' } = (await readSealedSpec(redis, keys)) ?? {};
    const replay = async (times: number) => {
      await redis.del(recordKey(keys, entryId));
      await submit(redis, keys, {
        ...{ entryId, generation, kind: 'command', payload, payloadHash: '' },
        ...{ inbox: record.inbox ?? '', retry: 'never' },
      });
      // This command runs after the repeated one.
      expect(await session.run('cat /tmp/ran')).toMatchObject({ stdout: 'once\n' });
      expect(await redis.hget(recordKey(keys, entryId), 'outcome')).toBe('error');
      expect(problemsOf(id)).toEqual(Array(times).fill('payload: this host began it before'));
    };
    await replay(1);
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    await replay(2);
    await session.close();
  });

  test('are required of a cancellation before it stops a running command', async () => {
    const session = await signed.session(nextId());
    const command = await session.submit('echo begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo unharmed');
    await begun(command);
    await (await stack.fleet.command(command.id)).cancel('forged');
    await expect.poll(() => problemsOf(session.id)).toContain('cancel: it is not signed');
    await session.files.write('/tmp/go', '');
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'begun\nunharmed\n' });

    const other = await session.submit('echo begun; sleep 600');
    await begun(other);
    await other.cancel('enough');
    expect(await other.result()).toMatchObject({ outcome: 'cancellation', cancelReason: 'enough' });
    await session.close();
  });

  test('are required of a close; after an unsigned close the session keeps its shell', async () => {
    const id = nextId();
    const session = await signed.session(id);
    const command = await session.submit('here=kept; echo begun; until [ -e /tmp/go ]; do sleep 0.05; done');
    await begun(command);
    await expect((await stack.fleet.session(id)).close()).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    await session.files.write('/tmp/go', '');
    expect(await command.result()).toMatchObject({ outcome: 'success' });
    // The close is written straight into the mailbox, while nothing runs.
    const keys = sessionKeys(stack.keyspace, 'default', id);
    await redis.hset(keys.state, 'phase', 'closing');
    await redis.publish(`${keys.wakeUpsPrefix}h1`, encodeWakeUp({ type: 'session', tenant: 'default', session: id }));
    await expect.poll(async () => (await session.info()).state, { timeout: 30_000 }).not.toBe('closing');
    expect(await session.run('echo $here')).toMatchObject({ stdout: 'kept\n', shell: { state: 'kept', epoch: 1 } });
    expect(problemsOf(id)).toContain('close: it is not signed');

    const last = await session.submit('echo begun; sleep 600');
    await begun(last);
    await session.close();
    expect(await last.result()).toMatchObject({ outcome: 'cancellation', cancelReason: 'session closed' });
  });

  test('are required at the end of a stdin before a command takes it as complete', async () => {
    const session = await signed.session(nextId());
    const keys = sessionKeys(stack.keyspace, 'default', session.id);
    const command = await session.submit('echo begun; cat > /tmp/in; echo complete', { stdin: { open: true } });
    await begun(command);
    await command.write('half');
    await writeInput(redis, keys, command.id.split('.')[1] ?? '', { writer: 'forger', number: 1, closes: 'end' });
    expect(await command.result()).toMatchObject({ ...UNAUTHORIZED, stdout: 'begun\n' });
    expect(problemsOf(session.id)).toContain('input-end: it is not signed');
    await session.close();
  });

  test('limit terminals and tools to producers', async () => {
    const id = nextId();
    const session = await signed.session(id);
    expect(await session.run('true')).toMatchObject({ outcome: 'success' });
    await expect((await stack.fleet.session(id)).attach()).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    expect(problemsOf(id)).toContain('terminal-input: it is not signed');
    const terminal = await session.attach();
    let shown = '';
    const reading = (async () => {
      for await (const piece of terminal.output()) shown += Buffer.from(piece).toString();
    })();
    await terminal.write('echo si"gn"ed; exit\n');
    await reading;
    expect(shown).toContain('signed');
    const [ended] = await until(
      () => audited(id).filter(({ type }) => type === 'terminal-end'),
      (found) => found.length === 1,
    );
    expect(ended).toMatchObject({ reason: 'exited' });
    expect(audited(id)).toContainEqual(expect.objectContaining({ type: 'terminal-start', producer: 'ci' }));
    await session.close();

    expect(await signed.tools.call('add', { a: 1, b: 2 })).toMatchObject({ ok: true });
    const refused = await stack.fleet.tools.call('add', { a: 1, b: 2 });
    expect(refused).toMatchObject({ ok: false, error: { code: 'denied' } });
    const calls = await until(
      () => auditedAll().filter(({ type }) => type.startsWith('tool-')),
      (found) => found.length === 3,
    );
    expect(calls).toEqual([
      { type: 'tool-start', tool: 'add', call: expect.any(String), producer: 'ci' },
      { type: 'tool-end', tool: 'add', call: expect.any(String), outcome: 'success' },
      { type: 'tool-end', tool: 'add', call: refused.callId, outcome: 'denied' },
    ]);
  });

  test('keep a waiting command from running when its record is changed to started', async () => {
    const session = await signed.session(nextId(), { approval: 'unless-trusted' });
    await session.run('true');
    const command = await session.submit('touch /tmp/forged');
    await until(
      () => session.info(),
      ({ heldCommandId }) => heldCommandId === command.id,
    );
    const keys = sessionKeys(stack.keyspace, 'default', session.id);
    const entryId = command.id.slice(session.id.length + 1);
    const { fence = '', host = '' } = await redis.hgetall(keys.state);
    await redis.hset(recordKey(keys, entryId), { state: 'running', fence, host, startedAt: Date.now() });
    await redis.multi().lrem(keys.queue, 0, entryId).hset(keys.state, 'running', entryId).exec();
    const wakeUp = encodeWakeUp({ type: 'session', tenant: 'default', session: session.id });
    await redis.publish(`${keys.wakeUpsPrefix}${host}`, wakeUp);
    expect(await command.result()).toMatchObject(UNAUTHORIZED);
    expect(await session.run('ls /tmp')).toMatchObject({ outcome: 'success', stdout: '' });
    await session.close();
  });
});

const begun = async (command: Command) => {
  for await (const _chunk of command.output()) return;
};
