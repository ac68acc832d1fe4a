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

/** Returns the result of a failed call without the fields that differ from run to run. */
async function failure(name: string, args?: unknown, options?: { timeoutMs?: number }) {
  const result = await call(name, args, options);
  if (result.ok) throw new Error(`${name} succeeded with ${JSON.stringify(result.output)}`);
  return { code: result.error.code, message: result.error.message, hostId: result.hostId };
}

describe('a call of a tool', () => {
  // S4-13
  test('returns the function’s result, awaited or not', async () => {
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
  test('has the caller’s id in its result, success or failure, and in its events', async () => {
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
  test('finds its tool by a query for name or description, in any case', async () => {
    const names = async (query: string) => (await stack.fleet.tools.list({ query })).map(({ name }) => name);
    expect(await names('TWO numbers')).toEqual(['add']);
    expect(await names('Other_N')).toEqual(['other_name']);
    expect(await names('no such text')).toEqual([]);
    await expect(stack.fleet.tools.list({ query: 1 as never })).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
    expect((await new FleetCli(stack).run(['tools', 'ls', 'two'])).stdout.toString()).toMatch(/^TOOL.*\nadd +h1 .*\n$/);
  });

  test('uses the name of the definition, and not that of the export', async () => {
    expect(await call('other_name')).toMatchObject({ ok: true, output: 'named' });
    expect(await failure('named')).toEqual({ code: 'unknown-tool', message: 'unknown tool: named', hostId: null });
  });

  // S4-07
  test.each(['no_such_tool', 'helper', '__proto__', 'a:b', ''])(
    'returns an error result, and no exception, for an unknown tool: %j',
    async (name) => {
      expect(await failure(name)).toEqual({ code: 'unknown-tool', message: `unknown tool: ${name}`, hostId: null });
    },
  );

  // S4-03
  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'is refused for a timeout of %d before anything else is checked',
    async (timeoutMs) => {
      await expect(call('no_such_tool', { a: 1n }, { timeoutMs })).rejects.toMatchObject({
        name: 'ShellfleetError',
        code: 'COMMAND_INVALID',
        context: { issues: [{ path: 'timeoutMs', message: expect.any(String) }] },
      });
    },
  );

  // S4-05
  test('is refused for its options first, then its name, then its arguments', async () => {
    const args = { a: 1n };
    await expect(call('no_such_tool', args, { timeoutMs: 0 })).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
    expect(await failure('no_such_tool', args)).toMatchObject({ code: 'unknown-tool' });
    expect(await failure('echo', args)).toMatchObject({ code: 'not-json' });
  });

  // S4-03
  test('is refused for a timeout that is not positive', async () => {
    await expect(call('add', {}, { timeoutMs: 0 })).rejects.toThrow('timeoutMs: must be positive');
  });

  test('lists the fields that do not fit the tool’s schema', async () => {
    expect(await call('add', { a: 'x' })).toMatchObject({
      ok: false,
      error: {
        code: 'arguments-invalid',
        message: expect.stringMatching(/^Shellfleet: the arguments of tool 'add' are not valid: a: .+; b: .+$/),
        context: { issues: [{ path: 'a' }, { path: 'b' }] },
      },
    });
  });

  // S4-09
  test.each([
    ['undefined', { a: undefined }, 'args.a is undefined'],
    ['NaN', { a: Number.NaN }, 'args.a is NaN'],
    ['a BigInt', { a: 1n }, 'args.a is a BigInt'],
    ['a function', { a: () => 1 }, 'args.a is a function'],
  ])('is refused as not JSON with %s in its arguments', async (_what, args, where) => {
    expect(await failure('echo', args)).toEqual({
      code: 'not-json',
      message: `Shellfleet: tool 'echo' or its arguments are not JSON (${where}). Use plain values.`,
      hostId: null,
    });
  });

  // S4-09
  test.each([
    ['nan', 'output.a is NaN'],
    ['bigint', 'output is a BigInt'],
    ['nothing', 'output is undefined'],
    ['cycle', 'output.self holds itself'],
    ['date', 'output is a Date'],
  ])('reports the place when the tool returns no JSON: %s', async (what, where) => {
    expect(await failure('notJson', { what })).toEqual({
      code: 'not-json',
      message: `Shellfleet: the output of tool 'notJson' is not JSON (${where}). Return plain values.`,
      hostId: 'h1',
    });
  });

  // S4-19
  test('passes keys named __proto__ and constructor like any other, both ways', async () => {
    const args = JSON.parse('{"__proto__": {"admin": true}, "constructor": {"prototype": {"admin": true}}}');
    const result = await call('echo', args);
    expect(JSON.stringify(result.ok && result.output)).toBe(JSON.stringify(args));
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  // S4-17
  test('returns 20 MB complete, more than any pipe holds', async () => {
    const result = await call('large', { bytes: 20_000_000 });
    expect(result.ok && (result.output as string) === 'x'.repeat(20_000_000)).toBe(true);
  });

  // S4-17
  test('reports both sizes when its output is over the limit', async () => {
    expect(await failure('large', { bytes: 33_554_431 })).toEqual({
      code: 'too-large',
      message: "Shellfleet: the output of tool 'large' is 33554433 bytes; the limit is 33554432",
      hostId: 'h1',
    });
  });

  test('reports both sizes, and sends nothing, when its arguments are over the limit', async () => {
    expect(await failure('echo', 'x'.repeat(4_194_304))).toEqual({
      code: 'too-large',
      message: "Shellfleet: the arguments of tool 'echo' are 4194306 bytes; the limit is 4194304",
      hostId: null,
    });
  });

  test('names the field in which the output breaks the declared schema', async () => {
    expect(await call('liesAboutOutput')).toMatchObject({
      ok: false,
      error: { code: 'output-invalid', context: { issues: [{ path: 'count' }] } },
    });
  });

  // S4-08, S4-11, S4-14
  test.each([
    ['type-error', 'TypeError: no such thing'],
    ['rejection', 'RangeError: rejected'],
    ['string', 'string: only text'],
    ['null', 'null'],
    ['object', 'Object: { code: 7 }'],
    ['proxy', 'something that cannot be read'],
  ])('reports error and output so far when the tool throws: %s', async (what, error) => {
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

  // S4-14
  test('fails at once when the tool throws outside of the awaited function', async () => {
    expect(await failure('raisesLater')).toMatchObject({
      code: 'raised',
      message: 'Shellfleet: tool raised Error: from a timer',
    });
  });

  // S4-12, S4-01
  test.each([
    ['exits', { exitCode: 3, signal: null }],
    ['crashes', { exitCode: null, signal: 'SIGSEGV' }],
    ['forges', { exitCode: 0, signal: null }],
  ])('fails without an effect on other calls when its process dies unreported: %s', async (name, context) => {
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

  // S4-12
  test('ends at once when the tool awaits a promise that never settles', async () => {
    const before = performance.now();
    expect(await failure('never')).toMatchObject({
      code: 'died',
      message: 'Shellfleet: subprocess exited without producing a result: its promise never settles',
    });
    expect(performance.now() - before).toBeLessThan(20_000);
  });

  test('returns the real result when the tool prints forged results and much else', async () => {
    expect(await call('prints')).toMatchObject({ ok: true, output: 'its own' });
  });

  test.each(['returns', 'returns-much', 'prints', 'throws'])(
    'hides a token of a well-known format when the tool %s it',
    async (how) => {
      const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`;
      const result = JSON.stringify(await call('leaks', { text: `it is ${token}.`, how }));
      expect(result).not.toContain(token);
      expect(result).toContain('it is [REDACTED_GITHUB_TOKEN].');
    },
  );

  // S4-13
  test('runs without the environment of its worker', async () => {
    const result = await call('environment');
    const names = Object.keys((result.ok && result.output) || {});
    const allowed = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'SHELLFLEET_TOOL_CALL'];
    expect(names.filter((name) => !allowed.includes(name))).toEqual([]);
    expect(names).toContain('PATH');
    expect(JSON.stringify(result)).not.toContain(stack.sealKey);
  });
});

describe('the list of tools', () => {
  // S4-06
  test('has each tool with its JSON Schemas and hosts, by name', async () => {
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
