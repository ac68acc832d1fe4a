import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { digestOfQuestion, writeAnswer } from '@shellfleet/mailbox';
import {
  type ApprovalAnswer,
  type ApprovalKeys,
  type AuditEvent,
  answeredKey,
  approvalGrantKey,
  approvalKeys,
  commandPayloadSchema,
  type PrefixRule,
  type StoredQuestion,
  sessionSpecSchema,
} from '@shellfleet/protocol';
import { createSealer, createSealKey, createSigner, createVerifier, sealPlace } from '@shellfleet/sealing';
import { auditAnswers, HostApprovals, logErrorsInto } from '@shellfleet/worker/test-support';
import { beforeEach, describe, expect, test } from 'vitest';
import { newNamespace } from '../support/mailbox-session.ts';
import { redis, useMailbox } from '../support/open-mailbox.ts';
import { storeWaitingEntry } from '../support/waiting-entry.ts';

useMailbox();

// How a host checks the answers to questions, whatever Redis contains.

const sealKey = createSealKey();
const [ada, earlier] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
const HOUR_MS = 3_600_000;
const RULE: PrefixRule = { pattern: ['make', 'all'], decision: 'allow' };
const ASKED = { reason: 'it asks', amendment: RULE, matchedRules: [] };

let namespace: string;
let audited: AuditEvent[];
beforeEach(() => {
  namespace = newNamespace();
  audited = [];
});

const keysOf = (tenant = 't1') => approvalKeys(namespace, tenant);
const questionOf = (session: string, more: { generation?: string; entryId?: string; script?: string } = {}) => {
  const { script = 'make all', ...rest } = more;
  return {
    ...{
      tenant: 't1',
      session,
      generation: 'g',
      entryId: 'e',
      epoch: 1,
      opens: false,
      attempt: { number: 1 as const },
    },
    wider: { refusal: undefined, sandbox: undefined },
    payload: commandPayloadSchema.parse({ type: 'command', script, timeoutMs: 1_000, encoding: 'utf8' }),
    spec: sessionSpecSchema.parse({}),
    ...rest,
  };
};

interface Host {
  approvals: HostApprovals;
  ask(session: string, more?: Parameters<typeof questionOf>[1]): Promise<string>;
  find(session: string, more?: Parameters<typeof questionOf>[1]): Promise<unknown>;
}

/**
 * Starts a host that accepts answers signed with the keys in `approvers`, or, without them, each one with the seal key.
 */
function startHost(approvers?: { publicKey: KeyObject }[]): Host {
  const known = approvers?.map(({ publicKey }) => ({ id: 'ada', tenants: ['*'], publicKey }));
  const verifier = known && createVerifier({ producers: [], approvers: known }, () => {});
  const approvals = new HostApprovals({
    ...{
      redis,
      namespace,
      hostId: 'h1',
      logger: logErrorsInto([]),
      mostPending: 10,
      signal: new AbortController().signal,
    },
    sealer: createSealer([sealKey], { verifier }),
    jobs: { ensure: async () => {} } as never,
    audit: { note: () => {}, recorded: async () => {} },
    check: auditAnswers({ record: async (_tenant, event) => void audited.push(event) }),
  });
  return {
    approvals,
    async ask(session, more) {
      const question = questionOf(session, more);
      await storeWaitingEntry(redis, keysOf(), question);
      const asked = await approvals.ask(question, ASKED, { value: (value) => value });
      if (asked.type !== 'pending') throw new Error(`it is ${asked.type}`);
      return asked.data.id;
    },
    find: (session, more) =>
      approvals.find(questionOf(session, more), ASKED, (rules) => rules.some(({ pattern }) => pattern[0] === 'make')),
  };
}

const DESCRIBED: StoredQuestion = {
  ...{ sessionId: 's1', commandId: 's1.e', script: 'make all', reason: 'it asks', place: 'policy docker', env: [] },
  amendment: RULE,
};

/** Writes an answer, signed by an approver whose clock is ahead by `aheadMs`. */
async function answer(
  given: Partial<ApprovalAnswer> & { id: string },
  {
    key = ada,
    aheadMs = 0,
    asked = DESCRIBED,
    keys = keysOf(),
  }: {
    key?: { privateKey: KeyObject };
    aheadMs?: number;
    asked?: StoredQuestion;
    keys?: ApprovalKeys;
  } = {},
): Promise<void> {
  const signer = createSigner(key.privateKey, () => HOUR_MS + aheadMs);
  const text = JSON.stringify({
    ...{ type: 'approve', scope: 'command', answeredBy: 'ada', asked: digestOfQuestion(asked) },
    ...given,
  });
  const sealed = createSealer([sealKey], { signer }).seal(text, sealPlace('approval-answer', keys, { question: '' }));
  await writeAnswer(redis, keysOf(), sealed);
}

const GRANTED = { type: 'granted', startBy: expect.any(Number) };
const OPEN = { type: 'open' };

describe('an answer to a question', () => {
  test('is applied and recorded once, however many hosts read it', async () => {
    const hosts = [startHost([ada]), startHost([ada]), startHost([ada])] as const;
    const id = await hosts[0].ask('s1');
    await answer({ id });
    for (const { approvals } of hosts) await approvals.apply('t1');
    expect(await hosts[1].find('s1')).toEqual(GRANTED);
    expect(audited).toEqual([
      { type: 'answer', question: id, decision: 'approve', answeredBy: 'ada', scope: 'command', approver: 'ada' },
    ]);
  });

  test('leaves the same question of another tenant open', async () => {
    const host = startHost([ada]);
    const id = await host.ask('s1');
    await answer({ id }, { keys: keysOf('t2') });
    expect(await host.find('s1')).toEqual(OPEN);
    expect(await redis.xlen(keysOf().answers)).toBe(0);
  });

  test('is refused if the clock of its approver is behind by more than an hour', async () => {
    const host = startHost([ada]);
    const id = await host.ask('s1');
    await answer({ id }, { aheadMs: -2 * HOUR_MS });
    expect(await host.find('s1')).toEqual(OPEN);
    expect(audited).toEqual([
      {
        ...{ type: 'unauthorized', kind: 'approval-answer', question: id },
        problem: 'the signature by ada has expired',
      },
    ]);
    await answer({ id }, { aheadMs: -HOUR_MS / 2 });
    expect(await host.find('s1')).toEqual(GRANTED);
    const next = await host.ask('s2');
    await answer(
      { id: next },
      { aheadMs: 1_000 * HOUR_MS, asked: { ...DESCRIBED, sessionId: 's2', commandId: 's2.e' } },
    );
    expect(await host.find('s2')).toEqual(GRANTED);
  });

  test('is refused if it was given to another question than the pending one', async () => {
    const host = startHost([ada]);
    const id = await host.ask('s1');
    await answer({ id }, { asked: { ...DESCRIBED, script: 'make clean' } });
    expect(await host.find('s1')).toEqual(OPEN);
  });

  test('changes nothing if its question has ended or if it cannot be parsed', async () => {
    const host = startHost();
    const id = await host.ask('s1');
    await answer({ id, type: 'deny' });
    expect(await host.find('s1')).toMatchObject({ type: 'denied', by: 'approver' });
    await answer({ id, scope: 'prefix' });
    await redis.xadd(keysOf().answers, '*', 'other', 'field');
    expect(await host.find('s1')).toMatchObject({ type: 'denied' });
    expect(await host.find('s2')).toEqual(OPEN);
    expect(await redis.xlen(keysOf().answers)).toBe(0);
  });
});

describe('an approval', () => {
  test('keeps the scope `command`, though its id is copied to the grants of wider scopes', async () => {
    const host = startHost([ada]);
    const id = await host.ask('s1');
    await answer({ id });
    expect(await host.find('s1')).toEqual(GRANTED);
    await redis.zadd(keysOf().grants, '+inf', id);
    await redis.set(answeredKey(keysOf(), `s2 g ${id.split('.')[0]}`), `${id} session`);
    expect(await host.find('s1', { script: 'make more' })).toEqual(OPEN);
    expect(await host.find('s2')).toEqual(OPEN);
  });

  test('grants nothing after it is copied to the id of another question', async () => {
    const host = startHost();
    const id = await host.ask('s1');
    await answer({ id, scope: 'prefix' });
    expect(await host.find('s3')).toEqual(GRANTED);
    const forged = `${'b'.repeat(20)}.${'c'.repeat(12)}`;
    await redis.rename(approvalGrantKey(keysOf(), id), approvalGrantKey(keysOf(), forged));
    await redis.zadd(keysOf().grants, '+inf', forged);
    expect(await host.find('s3')).toEqual(OPEN);
  });

  test('is ignored by a host without the key of its approver, which asks again', async () => {
    const before = startHost([ada, earlier]);
    const id = await before.ask('s1');
    await answer({ id }, { key: earlier });
    expect(await before.find('s1')).toEqual(GRANTED);
    const after = startHost([ada]);
    expect(await after.find('s1')).toEqual(OPEN);
    const again = await after.ask('s1');
    expect(again).not.toBe(id);
    await answer({ id: again });
    expect(await after.find('s1')).toEqual(GRANTED);
  });

  test('ends with the generation of its session if its scope is `session`', async () => {
    const host = startHost();
    const id = await host.ask('s1');
    await answer({ id, scope: 'session' });
    expect(await host.find('s1', { entryId: 'f' })).toEqual(GRANTED);
    expect(await host.find('s1', { entryId: 'f', generation: 'h' })).toEqual(OPEN);
  });
});

describe('a revocation', () => {
  test('waits for starts under the approval, but not for pending questions', async () => {
    const host = startHost();
    const { approvals } = host;
    const id = await host.ask('s1');
    await answer({ id, scope: 'prefix' });
    const [found, cleared] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const starting = approvals.starts.during(questionOf('s2'), async () => {
      await host.find('s2');
      found.resolve();
      await cleared.promise;
    });
    const held = Promise.withResolvers<void>();
    const asking = approvals.starts.during(questionOf('s3', { script: 'other' }), async () => {
      await approvals.find(questionOf('s3', { script: 'other' }), { reason: 'it asks' }, () => false);
      await held.promise;
    });
    await found.promise;
    await answer({ id, type: 'revoke' });
    const confirming = approvals.wakeUp('t1', '1-1');
    await expect.poll(() => redis.exists(approvalGrantKey(keysOf(), id))).toBe(0);
    const confirmed = () => redis.smembers(`${keysOf().prefix}confirmed:1-1`);
    expect(await confirmed()).toEqual([]);
    cleared.resolve();
    await confirming;
    expect(await confirmed()).toEqual(['h1']);
    held.resolve();
    await Promise.all([starting, asking]);
  });
});
