import { expect, test, vi } from 'vitest';
import { createQuickZod, lazySchema } from './quick-zod.ts';

type Schema = { safeParse(value: unknown): { success: boolean; data?: unknown; error?: { issues: unknown } } };

const { z: realZ } = await vi.importActual<{ z: unknown }>('zod');
const asked = vi.fn(() => realZ);
const quickZ = createQuickZod(asked);

const libraries = async () => ({
  ...(await import('@shellfleet/protocol')),
  ...(await import('../../libs/protocol/src/approval.ts')),
  ...(await import('../../libs/protocol/src/tool.ts')),
});
const real = await libraries();
vi.resetModules();
vi.doMock('zod', () => ({ z: quickZ }));
const quick = await libraries();
vi.doUnmock('zod');

const ULID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
/** One of most kinds of values that cross a process boundary. */
const SAMPLES: unknown[] = [
  'agent-42',
  { type: 'docker', readOnlyRootfs: true, network: 'none' },
  {
    image: 'alpine',
    env: { A: 'x' },
    output: { maxBytes: 10 },
    limits: { cpus: 0.5, pids: 32 },
    labels: { team: 'a' },
    secrets: { KEY: 'a secret' },
  },
  {
    redaction: [{ type: 'own', strategy: 'mask', pattern: 'x+' }],
    startupCommands: ['true'],
    priority: 3,
    hostGraceMs: -0,
  },
  {
    timeoutMs: 5,
    env: { A: 'x' },
    cwd: '/',
    stdin: 'in',
    idempotencyKey: 'k',
    retry: 'never',
    attachReader: true,
    killGraceMs: -0,
  },
  { type: 'command', script: 'true', timeoutMs: 5, killGraceMs: 1, env: {}, encoding: 'utf8', reader: 'attached' },
  { type: 'file', operation: { name: 'write', path: '/x', offset: 0, last: true, transfer: ULID, data: '' } },
  {
    slots: 1,
    free: 0,
    policies: ['docker'],
    version: '1',
    protocol: 1,
    boot: 'b',
    draining: false,
    defaultImage: 'a',
    heldMs: 5,
  },
  { type: 'attach', generation: 'g', terminal: ULID, rows: 24, columns: 80, term: 'xterm' },
  { code: 'INTERNAL', message: 'm', retryable: false, context: { a: 1 } },
  real.newResult({ outcome: 'success', exitCode: 0, reason: 'exited' }),
  real.newResult(
    { outcome: 'failure', exitCode: 1, reason: 'oom' },
    { redactions: { key: 2 }, shell: { state: 'lost', reason: 'r', epoch: 1 } },
  ),
  real.newResult(
    { outcome: 'cancellation', reason: 'cancelled', cancelReason: 'why' },
    { attempts: 2, firstAttempt: { exitCode: null, output: '' } },
  ),
];
/** What a field is replaced by. */
const OTHERS: unknown[] = [
  undefined,
  null,
  '',
  '\0',
  'x'.repeat(5_000),
  -1,
  1.5,
  Number.NaN,
  2 ** 60,
  true,
  [],
  [1],
  {},
  { a: { b: 1 } },
  JSON.parse('{"__proto__":1}'),
];

test('a valid command and its result need no zod', () => {
  asked.mockClear();
  const result = real.newResult({ outcome: 'success', exitCode: 0, reason: 'exited' });
  expect(quick.wireResultSchema.parse(result)).toStrictEqual(result);
  expect(quick.runOptionsSchema.parse({ attachReader: true })).toStrictEqual(
    real.runOptionsSchema.parse({ attachReader: true }),
  );
  expect(asked).not.toHaveBeenCalled();
  expect(quick.runOptionsSchema.safeParse({ attachReader: 1 }).success).toBe(false);
  expect(asked).toHaveBeenCalled();
});

test('a schema of the bundle makes of every value what that of zod makes of it', () => {
  const names = Object.keys(real).filter((name) => name.endsWith('Schema') && typeof schemaOf(real, name) === 'object');
  expect(names.length).toBeGreaterThan(40);
  const compare = (name: string, value: unknown) => {
    const expected = outcomeOf(schemaOf(real, name), value);
    expect(outcomeOf(schemaOf(quick, name), value), `${name} of ${JSON.stringify(value)}`).toStrictEqual(expected);
    return expected.success;
  };
  for (const name of names) for (const value of OTHERS) compare(name, value);
  for (const sample of SAMPLES) {
    const accepting = names.filter((name) => compare(name, sample));
    expect(accepting, JSON.stringify(sample)).not.toEqual([]);
    for (const name of accepting) for (const value of variantsOf(sample)) compare(name, value);
  }
});

test('the least length of a text is counted in code points', () => {
  const shortest = (library: unknown) => (library as { string(): { min(least: number): Schema } }).string().min(2);
  for (const text of ['\u{1F600}', '\u{1F600}a', 'ab', 'a'])
    expect(shortest(quickZ).safeParse(text).success, text).toBe(shortest(realZ).safeParse(text).success);
});

test('a schema is made at its first use, once', () => {
  const make = vi.fn(() => (quick as unknown as { sessionIdSchema: Schema }).sessionIdSchema);
  const schema = lazySchema(make) as Schema;
  expect(make).not.toHaveBeenCalled();
  expect(schema.safeParse('a')).toEqual({ success: true, data: 'a' });
  expect(schema.safeParse('a b').success).toBe(false);
  expect(make).toHaveBeenCalledTimes(1);
});

function schemaOf(library: object, name: string): Schema {
  return (library as Record<string, Schema>)[name] as Schema;
}

function outcomeOf(schema: Schema, value: unknown) {
  const { success, data, error } = schema.safeParse(value);
  return { success, data, issues: JSON.stringify(error?.issues) };
}

/** The value with each of its fields left out, or replaced by something else, and with a field more. */
function variantsOf(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  const more = Array.isArray(value) ? [] : [{ ...value, unheardOf: 1 }];
  return Object.entries(value)
    .flatMap(([name, field]) => {
      const { [name]: _left, ...without } = value as Record<string, unknown>;
      const others = [...OTHERS, ...variantsOf(field)].map((other) => ({ ...value, [name]: other }));
      return [without, ...others];
    })
    .concat(more);
}
