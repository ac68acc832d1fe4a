import { describe, expect, test } from 'vitest';
import { sessionSpecSchema } from './session.ts';

const issuesOf = (spec: object) =>
  sessionSpecSchema.safeParse(spec).error?.issues.map(({ path, message }) => [path.join('.'), message]) ?? [];

describe('approval', () => {
  // S3-26
  test('accepts `reject` for questions that exist, and `false` for every kind of question', () => {
    const all = { sandboxApproval: true, rules: true, requestPermissions: false, mcpElicitations: true };
    expect(sessionSpecSchema.parse({ approval: { reject: all } }).approval).toEqual({ reject: all });
    expect(sessionSpecSchema.parse({ approval: { reject: {} } }).approval).toEqual({
      reject: { sandboxApproval: false, rules: false, requestPermissions: false, mcpElicitations: false },
    });
  });

  // S3-26: a flag without effect is refused, never ignored.
  test('refuses to reject requestPermissions, which nothing asks yet, and gives the reason', () => {
    const issues = issuesOf({ approval: { reject: { requestPermissions: true } } });
    expect(JSON.stringify(issues)).toContain('nothing asks for more permissions yet');
  });
});

describe('askByDefault', () => {
  // S3-14
  test.each(['unreadable', 'sandboxed'] as const)('accepts %s beside an approval policy', (askByDefault) => {
    expect(sessionSpecSchema.parse({ approval: 'on-request', askByDefault }).askByDefault).toBe(askByDefault);
  });

  test('is refused without an approval policy, since nothing else asks', () => {
    expect(issuesOf({ askByDefault: 'sandboxed' })).toEqual([
      ['askByDefault', 'has a meaning only with `approval`: without one nothing is asked by default'],
    ]);
    expect(issuesOf({ approval: 'never', askByDefault: 'always' })).toEqual([
      ['askByDefault', "must be 'unreadable' or 'sandboxed'"],
    ]);
  });
});

describe('a rule of a session', () => {
  test.each(['', ' ', '\n\t'])('is refused with the blank justification %j', (justification) => {
    expect(issuesOf({ execPolicy: [{ pattern: ['rm'], decision: 'forbid', justification }] })).toEqual([
      ['execPolicy.0.justification', 'must say why: leave it out, or give a text that is not blank'],
    ]);
  });
});
