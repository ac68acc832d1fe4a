import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ env: { SHELLFLEET_TOOLS: toolModules('everyday', 'hostile') } });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const call = (name: string, args?: unknown, options?: { timeoutMs?: number }) =>
  stack.fleet.tools.call(name, args, options);

/** The result of a failed call without the fields that differ from run to run. */
async function failure(name: string, args?: unknown, options?: { timeoutMs?: number }) {
  const result = await call(name, args, options);
  if (result.ok) throw new Error(`${name} succeeded with ${JSON.stringify(result.output)}`);
  return { code: result.error.code, message: result.error.message, hostId: result.hostId };
}

describe('A call', () => {
  test('S4-13: answers with what the function returned, awaited or not', async () => {
    expect(await call('add', { a: 1, b: 2 })).toEqual({
      callId: expect.stringMatching(/^[0-9A-Z]{26}$/),
      hostId: 'h1',
      ok: true,
      output: { sum: 3 },
    });
    expect(await call('echo', { deep: [null, 'ü', { '': -1.5 }] })).toMatchObject({
      ok: true,
      output: { deep: [null, 'ü', { '': -1.5 }] },
    });
  });

  // S4-21
  test("has the caller's own id in its result, success or failure, and in its events", async () => {
    const watched = stack.fleet.tools.watch();
    await watched.next();
    const callId = 'toolu_01: "resize" ü';
    expect(await stack.fleet.tools.call('add', { a: 1, b: 2 }, { callId })).toMatchObject({ callId, ok: true });
    expect(await stack.fleet.tools.call('add', {}, { callId })).toMatchObject({ callId, ok: false });
    expect(await stack.fleet.tools.call('no_such_tool', {}, { callId })).toMatchObject({ callId, ok: false });
    const events: unknown[] = [];
    for await (const event of watched) {
      if (event.type === 'call.started' || event.type === 'call.ended') events.push([event.type, event.callId]);
      if (events.length === 4) break;
    }
    expect(events).toEqual([
      ['call.started', callId],
      ['call.ended', callId],
      ['call.started', callId],
      ['call.ended', callId],
    ]);
    await expect(stack.fleet.tools.call('add', {}, { callId: '' })).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
  });

  // S4-20
  test('is of a tool that a list with a query finds by its name or description, in any case', async () => {
    const names = async (query: string) => (await stack.fleet.tools.list({ query })).map(({ name }) => name);
    expect(await names('TWO numbers')).toEqual(['add']);
    expect(await names('Other_N')).toEqual(['other_name']);
    expect(await names('no such text')).toEqual([]);
    await expect(stack.fleet.tools.list({ query: 1 as never })).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
    expect((await new FleetCli(stack).run(['tools', 'ls', 'two'])).stdout.toString()).toMatch(/^TOOL.*\nadd +h1 .*\n$/);
  });

  test('has the name that the definition gives, and not the one of the export', async () => {
    expect(await call('other_name')).toMatchObject({ ok: true, output: 'named' });
    expect(await failure('named')).toEqual({ code: 'unknown-tool', message: 'unknown tool: named', hostId: null });
  });

  test.each(['no_such_tool', 'helper', '__proto__', 'a:b', ''])(
    'S4-07: of an unknown tool (%j) is an error result, and no exception',
    async (name) => {
      expect(await failure(name)).toEqual({ code: 'unknown-tool', message: `unknown tool: ${name}`, hostId: null });
    },
  );

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'S4-03: a timeout of %d is refused, before anything else is looked at',
    async (timeoutMs) => {
      await expect(call('no_such_tool', { a: 1n }, { timeoutMs })).rejects.toMatchObject({
        name: 'ShellfleetError',
        code: 'COMMAND_INVALID',
        context: { issues: [{ path: 'timeoutMs', message: expect.any(String) }] },
      });
    },
  );

  test('S4-05: is refused for its options first, then for its name, then for its arguments', async () => {
    const args = { a: 1n };
    await expect(call('no_such_tool', args, { timeoutMs: 0 })).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
    expect(await failure('no_such_tool', args)).toMatchObject({ code: 'unknown-tool' });
    expect(await failure('echo', args)).toMatchObject({ code: 'not-json' });
  });

  test('S4-03: refuses a timeout that is not positive', async () => {
    await expect(call('add', {}, { timeoutMs: 0 })).rejects.toThrow('timeoutMs: must be positive');
  });

  test('whose arguments do not fit the schema of the tool lists the fields', async () => {
    expect(await call('add', { a: 'x' })).toMatchObject({
      ok: false,
      error: {
        code: 'arguments-invalid',
        message: expect.stringMatching(/^Shellfleet: the arguments of tool 'add' are not valid: a: .+; b: .+$/),
        context: { issues: [{ path: 'a' }, { path: 'b' }] },
      },
    });
  });

  test.each([
    ['undefined', { a: undefined }, 'args.a is undefined'],
    ['NaN', { a: Number.NaN }, 'args.a is NaN'],
    ['a BigInt', { a: 1n }, 'args.a is a BigInt'],
    ['a function', { a: () => 1 }, 'args.a is a function'],
  ])('S4-09: with %s in its arguments is refused as not JSON', async (_what, args, where) => {
    expect(await failure('echo', args)).toEqual({
      code: 'not-json',
      message: `Shellfleet: tool 'echo' or its arguments are not JSON (${where}). Use plain values.`,
      hostId: null,
    });
  });

  test.each([
    ['nan', 'output.a is NaN'],
    ['bigint', 'output is a BigInt'],
    ['nothing', 'output is undefined'],
    ['cycle', 'output.self holds itself'],
    ['date', 'output is a Date'],
  ])('S4-09: that returns no JSON (%s) reports the place', async (what, where) => {
    expect(await failure('notJson', { what })).toEqual({
      code: 'not-json',
      message: `Shellfleet: the output of tool 'notJson' is not JSON (${where}). Return plain values.`,
      hostId: 'h1',
    });
  });

  test('S4-19: keys called __proto__ and constructor are keys like any other, there and back', async () => {
    const args = JSON.parse('{"__proto__": {"admin": true}, "constructor": {"prototype": {"admin": true}}}');
    const result = await call('echo', args);
    expect(JSON.stringify(result.ok && result.output)).toBe(JSON.stringify(args));
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  test('S4-17: brings back more than any pipe holds, whole: 20 MB', async () => {
    const result = await call('large', { bytes: 20_000_000 });
    expect(result.ok && (result.output as string) === 'x'.repeat(20_000_000)).toBe(true);
  });

  test('S4-17: whose output is over the limit reports both sizes', async () => {
    expect(await failure('large', { bytes: 33_554_431 })).toEqual({
      code: 'too-large',
      message: "Shellfleet: the output of tool 'large' is 33554433 bytes; the limit is 33554432",
      hostId: 'h1',
    });
  });

  test('whose arguments are over the limit reports both sizes, and is not sent', async () => {
    expect(await failure('echo', 'x'.repeat(4_194_304))).toEqual({
      code: 'too-large',
      message: "Shellfleet: the arguments of tool 'echo' are 4194306 bytes; the limit is 4194304",
      hostId: null,
    });
  });

  test('whose output is not what the tool declares names the field', async () => {
    expect(await call('liesAboutOutput')).toMatchObject({
      ok: false,
      error: { code: 'output-invalid', context: { issues: [{ path: 'count' }] } },
    });
  });

  test.each([
    ['type-error', 'TypeError: no such thing'],
    ['rejection', 'RangeError: rejected'],
    ['string', 'string: only text'],
    ['null', 'null'],
    ['object', 'Object: { code: 7 }'],
    ['proxy', 'something that cannot be read'],
  ])('S4-08, S4-11, S4-14: that throws (%s) reports the error and the output so far', async (what, error) => {
    expect(await call('raises', { what })).toEqual({
      callId: expect.any(String),
      hostId: 'h1',
      ok: false,
      error: {
        code: 'raised',
        message: `Shellfleet: tool raised ${error}`,
        context: { stderr: 'about to raise\n' },
      },
    });
  });

  test('S4-14: that throws outside of the awaited function fails at once', async () => {
    expect(await failure('raisesLater')).toMatchObject({
      code: 'raised',
      message: 'Shellfleet: tool raised Error: from a timer',
    });
  });

  test.each([
    ['exits', { exitCode: 3, signal: null }],
    ['crashes', { exitCode: null, signal: 'SIGSEGV' }],
    ['forges', { exitCode: 0, signal: null }],
  ])('S4-12, S4-01: whose process dies without a report (%s) fails, and harms nothing else', async (name, context) => {
    const beside = call('mark', { path: '/dev/null', id: 'beside', waitMs: 1_000 });
    expect(await call(name)).toEqual({
      callId: expect.any(String),
      hostId: 'h1',
      ok: false,
      error: { code: 'died', message: 'Shellfleet: subprocess exited without producing a result', context },
    });
    expect(await beside).toMatchObject({ ok: true, output: 'beside' });
    expect(await call('add', { a: 1, b: 1 })).toMatchObject({ ok: true, output: { sum: 2 } });
  });

  test('S4-12: that waits for what cannot come ends at once', async () => {
    const before = performance.now();
    expect(await failure('never')).toMatchObject({
      code: 'died',
      message: 'Shellfleet: subprocess exited without producing a result: its promise never settles',
    });
    expect(performance.now() - before).toBeLessThan(20_000);
  });

  test('that prints what looks like a result, and a lot, still answers with its own', async () => {
    expect(await call('prints')).toMatchObject({ ok: true, output: 'its own' });
  });

  test.each(['returns', 'returns-much', 'prints', 'throws'])(
    'that %s a token of a well-known format gives it to nobody',
    async (how) => {
      const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;
      const result = JSON.stringify(await call('leaks', { text: `it is ${token}.`, how }));
      expect(result).not.toContain(token);
      expect(result).toContain('it is [REDACTED_GITHUB_TOKEN].');
    },
  );

  test('S4-13: sees nothing of its worker in its environment', async () => {
    const result = await call('environment');
    const names = Object.keys((result.ok && result.output) || {});
    const allowed = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'SHELLFLEET_TOOL_CALL'];
    expect(names.filter((name) => !allowed.includes(name))).toEqual([]);
    expect(names).toContain('PATH');
    expect(JSON.stringify(result)).not.toContain(stack.sealKey);
  });
});

describe('list', () => {
  test('S4-06: has each tool with its JSON Schemas and hosts, by name', async () => {
    const tools = await stack.fleet.tools.list();
    expect(tools.map(({ name }) => name)).toEqual(tools.map(({ name }) => name).sort());
    expect(tools.find(({ name }) => name === 'add')).toEqual({
      name: 'add',
      description: 'Adds two numbers.',
      inputSchema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
      },
      outputSchema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: { sum: { type: 'number' } },
        required: ['sum'],
        additionalProperties: false,
      },
      timeoutMs: 30_000,
      hosts: ['h1'],
      differing: [],
    });
    expect(tools.map(({ name }) => name)).not.toContain('helper');
  });
});
