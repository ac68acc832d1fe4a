import { compileOperatorRules } from '@shellfleet/policy';
import { commandPayloadSchema, type ResolvedSessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test, vi } from 'vitest';
import type { AdmissionInput } from './admission.ts';
import { type AdmissionSteps, ANYONE_SUBMITS, createAdmission, NOBODY_ANSWERS } from './create-admission.ts';
import { decideByRules } from './decide-by-rules.ts';

const ref = { namespace: 'n', tenant: 't', session: 's' };
const NO_RULES: AdmissionSteps['rules'] = {
  digest: '',
  decide: () => ({ type: 'allow' }),
  decideOpening: () => ({ type: 'allow' }),
  decidesByPath: () => false,
  refuseTerminal: () => undefined,
  decideTool: () => ({ type: 'allow' }),
};
const spec = (given: object = {}): ResolvedSessionSpec => sessionSpecSchema.parse(given);

function question(): AdmissionInput {
  const payload = { type: 'restart' } as const;
  return {
    ...{ tenant: 't', session: 's', generation: 'g', entryId: 'e', payload, spec: spec(), epoch: 1, opens: false },
    wider: { refusal: 'this host has no wider sandbox', sandbox: undefined },
    attempt: { number: 1 },
  };
}

function admission(steps: Partial<AdmissionSteps>, of = spec()) {
  const all = { signatures: ANYONE_SUBMITS, rules: NO_RULES, answers: NOBODY_ANSWERS, ...steps };
  return createAdmission(all).forSession(of, ref);
}

describe('the admission of a session', () => {
  test('decides nothing without keys, rules and approvals (VERDICT-3)', () => {
    expect(admission({}).digest).toBe('');
    expect(admission({}, spec({ sandbox: { mode: 'read-only' } })).digest).toBe('');
    const decided = [
      admission({ rules: { ...NO_RULES, digest: 'rules' } }),
      admission({ signatures: { ...ANYONE_SUBMITS, digest: 'keys' } }),
      admission({}, spec({ approval: 'never' })),
      admission({}, spec({ execPolicy: [] })),
      admission({}, spec({ approval: 'never', sandbox: { mode: 'read-only' } })),
      admission({}, spec({ approval: 'on-request' })),
    ].map(({ digest }) => digest);
    expect(decided).not.toContain('');
    expect(new Set(decided).size).toBe(decided.length);
  });

  test('changes the digest of every session when the rules are reloaded', () => {
    const rules = { ...NO_RULES, digest: 'before' };
    const of = admission({ rules });
    const before = of.digest;
    rules.digest = 'after';
    expect(of.digest).not.toBe(before);
  });

  test('denies an entry that needs an answer if nobody can be asked (VERDICT-2)', async () => {
    const rules = { ...NO_RULES, decide: () => ({ type: 'ask' as const, question: { reason: 'it is new' } }) };
    expect(await admission({ rules }).decide(question())).toEqual({
      type: 'deny',
      reason: 'it is new; it needs an approval, and this host asks nobody',
    });
  });

  test('lets an answer admit an entry that asks, but never a forbidden entry (VERDICT-1)', async () => {
    const answers = { find: async () => ({ type: 'granted' as const }) };
    const asks = {
      ...NO_RULES,
      decide: () => ({ type: 'ask' as const, question: { reason: 'r' } }),
    };
    const forbids = { ...NO_RULES, decide: () => ({ type: 'forbid' as const, reason: 'no' }) };
    expect(await admission({ rules: asks, answers }).decide(question())).toEqual({ type: 'admit' });
    expect(await admission({ rules: forbids, answers }).decide(question())).toEqual({ type: 'deny', reason: 'no' });
  });

  test('refuses to let an entry leave, without a question, if no wider sandbox exists (VERDICT-5)', async () => {
    const decisions = [
      { type: 'allow', outside: true },
      { type: 'ask', question: { reason: 'r', outside: true } },
    ] as const;
    for (const decision of decisions) {
      const decided = admission({ rules: { ...NO_RULES, decide: () => decision } }).decide(question());
      await expect(decided).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    }
  });

  // mutants-3, fault 2
  test('refuses a command that a rule lets out if no wider sandbox exists', async () => {
    const text = 'rules: [{ pattern: [make], decision: allow }, { pattern: [setup], decision: prompt }]';
    const host = { rules: compileOperatorRules([{ name: '/rules.yaml', text }]) };
    const find = vi.fn(async () => ({ type: 'open' as const }));
    const of = admission({ rules: decideByRules(host, { unchecked: [], onReported: () => {} }), answers: { find } });
    const escalate = { justification: 'it needs the network' };
    const asked = { type: 'command', script: 'make', timeoutMs: 1_000, encoding: 'utf8' };
    const decided = (command: object) =>
      of.decide({
        ...question(),
        opens: true,
        payload: commandPayloadSchema.parse({ ...asked, ...command }),
        spec: spec({ approval: 'on-request', startupCommands: ['setup'] }),
      });
    expect(await decided({})).toMatchObject({ type: 'hold' });
    find.mockClear();
    await expect(decided({ escalate })).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    expect(find).not.toHaveBeenCalled();
  });

  test('does not consult the rules about an entry without a valid signature', async () => {
    const decide = vi.fn(NO_RULES.decide);
    const rules = { ...NO_RULES, decide };
    const signatures = { digest: 'k', check: async () => Promise.reject(new Error('unsigned')) };
    await expect(admission({ rules, signatures }).decide(question())).rejects.toThrow('unsigned');
    expect(decide).not.toHaveBeenCalled();
  });

  test('runs shutdown commands that ask only under the rules that opened the shell (VERDICT-4)', () => {
    const rules = {
      ...NO_RULES,
      digest: 'before',
      decideOpening: () => ({ type: 'ask' as const, question: { reason: 'it is new' } }),
    };
    const of = admission({ rules });
    expect(of.refuseShutdown()).toBe('it is new');
    of.opened();
    expect(of.refuseShutdown()).toBeUndefined();
    rules.digest = 'after';
    expect(of.refuseShutdown()).toBe('it is new');
  });

  test('never runs forbidden startup and shutdown commands', () => {
    const rules = { ...NO_RULES, digest: 'd', decideOpening: () => ({ type: 'forbid' as const, reason: 'no' }) };
    const of = admission({ rules });
    of.opened();
    expect([of.refuseStartup(), of.refuseShutdown()]).toEqual(['no', 'no']);
  });
});
