import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { fuzz, fuzzBytes, fuzzText, refusalOf } from '../test-support/fuzz.ts';
import { parseDurationText } from './duration-text.ts';
import { entryPayloadSchema } from './entry-payload.ts';
import { ERRORS, ensureShellfleetError, fromWireError, parseOrThrow, wireErrorSchema } from './errors.ts';
import { decodeStoredChunk, encodeStoredChunk } from './events.ts';
import { fileReplySchema } from './file.ts';
import { hostBeatSchema, hostCallSchema, hostReplySchemas, sealedReplySchema } from './host.ts';
import { parseCommandId, toCommandId } from './ids.ts';
import { NotJsonError, toJsonText, tryJson } from './json-text.ts';
import { runOptionsSchema } from './run-options.ts';
import { sessionSpecSchema } from './session.ts';
import {
  fromTerminalText,
  terminalInputMessageSchema,
  terminalOutputMessageSchema,
  toTerminalText,
} from './terminal.ts';
import { toolCallEventSchema, toolJobSchema, toolOfferSchema, wireToolResultSchema } from './tool.ts';
import { encodeWakeUp, parseWakeUp } from './wake-up.ts';
import { encodeWireResult, fromWireResult, newResult, wireResultSchema } from './wire-result.ts';

// Input from outside either parses, or is refused with an error that names the field.

// JSON writes -0 as 0: a value with -0 that was stored and read again counts as the same.
expect.addEqualityTesters([(one, other) => (one === 0 && other === 0 ? true : undefined)]);

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const SPEC = {
  policy: { type: 'docker', readOnlyRootfs: true },
  image: 'registry:5000/a/b:tag',
  env: { A: 'x' },
  cwd: '/workspace',
  shell: ['/bin/bash'],
  user: '1000:1000',
  startupCommands: ['true'],
  commandTimeoutMs: 5,
  output: { maxBytes: 10, maxLines: 3, keep: 'head', streamBytes: 9 },
  redaction: [{ type: 'own', strategy: 'mask', pattern: 'x+' }],
  secrets: { KEY: 'a secret' },
  limits: { memoryBytes: 2 ** 26, cpus: 0.5, pids: 32 },
  onHostLoss: 'fail',
  hostGraceMs: 0,
  priority: 3,
  labels: { team: 'a' },
};
const RUN = {
  timeoutMs: 5,
  env: { A: 'x' },
  cwd: '/',
  stdin: 'in',
  idempotencyKey: 'k',
  retry: 'never',
  encoding: 'utf8',
};
const COMMAND = { type: 'command', script: 'true', timeoutMs: 5, killGraceMs: 1, env: {}, encoding: 'utf8' };
const WRITE = { name: 'write', path: '/x', offset: 0, last: true, transfer: ID, data: '' };
const BEAT = {
  ...{ slots: 1, free: 0, policies: ['docker'], version: '1', protocol: 1, boot: 'b', draining: false },
  ...{ defaultImage: 'a', heldMs: 5 },
};
const ATTACH = { type: 'attach', generation: 'g', terminal: ID, rows: 24, columns: 80, term: 'xterm' };
const LOG = { type: 'log', entry: ID, streams: ['stdout'], from: { stdout: 0, stderr: 0 } };
const PULL = { type: 'pull-image', image: 'a' };
const REQUEST = { type: 'request', tenant: 't', session: 's', id: 'i', inbox: ID };
const WIRE_ERROR = { code: 'INTERNAL', message: 'm', retryable: false, context: {} };
const FAILED = { outcome: 'failure', exitCode: 3, reason: 'exited' } as const;
const BLOCKED = { ...FAILED, outcome: 'blocked', blocked: { type: 'email', reason: 'matched' } } as const;
const END = { type: 'end', reason: 'exited', exitCode: 0, signal: null };

const SCHEMAS: Record<string, { schema: z.ZodType; valid: unknown[] }> = {
  'a session spec': {
    schema: sessionSpecSchema,
    valid: [{}, SPEC, { policy: 'host' }, { workspace: { path: '/w', target: '/workspace', readOnly: true } }],
  },
  'run options': {
    schema: runOptionsSchema,
    valid: [{}, RUN, { stdin: { open: true } }, { stdin: new Uint8Array(3) }],
  },
  'the payload of an entry': {
    schema: entryPayloadSchema,
    valid: [COMMAND, { type: 'restart' }, { type: 'file', operation: WRITE }],
  },
  'the heartbeat of a host': { schema: hostBeatSchema, valid: [BEAT] },
  'a call to a host': {
    schema: hostCallSchema,
    valid: [
      { type: 'cancel', tenant: 't', session: 's', generation: 'g', entry: ID },
      { type: 'cancel-tool', call: ID },
      ...[{ type: 'background' }, ATTACH, LOG, { type: 'images' }, PULL].map((request) => ({ ...REQUEST, request })),
    ],
  },
  'the answer of a host': {
    schema: sealedReplySchema,
    valid: [
      { type: 'reply', value: 5 },
      { type: 'refusal', error: WIRE_ERROR },
    ],
  },
  'processes in the background': {
    schema: hostReplySchemas.background,
    valid: [{ processes: [{ pid: 5, command: 'sleep' }], way: 'loop' }],
  },
  'the answer to an attach': { schema: hostReplySchemas.attach, valid: [{ state: 'open' }] },
  'a page of a log': {
    schema: hostReplySchemas.log,
    valid: [{ pieces: [{ stream: 'stdout', offset: 0, bytes: 0 }], more: false }],
  },
  'the answer to a file operation': {
    schema: fileReplySchema,
    valid: [{ data: '', size: 5, records: [{ name: 'a', type: 'file', size: 1, mode: 5, modifiedAt: '' }] }],
  },
  'a Result': {
    schema: wireResultSchema,
    valid: [newResult({ outcome: 'error', error: WIRE_ERROR }, { output: 'x' }), newResult(FAILED), newResult(BLOCKED)],
  },
  'an error': { schema: wireErrorSchema, valid: [WIRE_ERROR] },
  'input of a terminal': {
    schema: terminalInputMessageSchema,
    valid: [{ type: 'input', from: 0, data: 'x' }, { type: 'resize', rows: 1, columns: 1 }, { type: 'close' }],
  },
  'output of a terminal': { schema: terminalOutputMessageSchema, valid: [{ type: 'output', data: '' }, END] },
  'the offer of a tool': {
    schema: toolOfferSchema,
    valid: [{ name: 'a', inputSchema: {}, outputSchema: { type: 'object' }, timeoutMs: 5 }],
  },
  'the event of a tool call': {
    schema: toolCallEventSchema,
    valid: [
      { type: 'call.started', at: '', callId: ID, name: 'a', hostId: 'h' },
      { type: 'call.ended', at: '', callId: ID, name: 'a', hostId: null, ok: false, code: 'lost' },
    ],
  },
  'the result of a tool call': {
    schema: wireToolResultSchema,
    valid: [
      { ok: true, hostId: 'h', output: { a: 1 } },
      { ok: false, hostId: null, error: { code: 'lost', message: 'm', context: {} } },
    ],
  },
  'the job of a tool call': {
    schema: toolJobSchema,
    valid: [{ call: ID, tenant: 't', inbox: ID, args: '', deadline: 5 }],
  },
};

describe('input from outside', () => {
  test.each(Object.entries(SCHEMAS))(
    'parses as %s, or is refused with an error that names the field',
    (what, { schema, valid }) => {
      let parsed = 0;
      fuzz(valid, (value) => {
        const refusal = refusalOf(() => parseOrThrow(schema, value, 'COMMAND_INVALID', what));
        if (refusal === undefined) parsed += 1;
        else expect(refusal.context.issues).not.toEqual([]);
      });
      expect(parsed, 'of the values that parsed').toBeGreaterThan(0);
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    },
  );

  test('parses as a session spec that stays the same when stored and parsed again', () => {
    fuzz([{}, SPEC, { policy: 'host', limits: { memoryBytes: 2 ** 26 } }], (value) => {
      const first = sessionSpecSchema.safeParse(value);
      if (first.success) expect(sessionSpecSchema.parse(JSON.parse(JSON.stringify(first.data)))).toEqual(first.data);
    });
  });

  test('parses as a Result that stays the same over the wire', () => {
    fuzz(
      [
        newResult({ outcome: 'success', exitCode: 0, reason: 'exited' }, { stdout: 'a', output: 'a' }),
        newResult(FAILED, { stdout: 'a', stderr: 'b', output: 'ba' }),
        newResult(FAILED, { shell: { state: 'kept', epoch: -0 } }),
      ],
      (value) => {
        const parsed = wireResultSchema.safeParse(value);
        if (!parsed.success) return;
        const ids = { commandId: 'c', sessionId: 's' };
        const sent = fromWireResult(ids, parsed.data);
        const stored = wireResultSchema.parse(JSON.parse(encodeWireResult(parsed.data)));
        expect(fromWireResult(ids, stored)).toEqual(sent);
      },
    );
  });

  test('becomes an error with a documented code, whatever code was received', () => {
    const names = ['toString', '__proto__', 'constructor', 'NEWER_CODE', 'HOST_LOST'];
    fuzz(
      names.map((code) => ({ ...WIRE_ERROR, code, context: 'text' })),
      (value) => {
        const parsed = wireErrorSchema.safeParse(value);
        if (!parsed.success) return;
        const error = fromWireError(parsed.data);
        expect(Object.hasOwn(ERRORS, error.code)).toBe(true);
        expect({ hint: typeof error.hint, context: typeof error.context }).toEqual({
          hint: 'string',
          context: 'object',
        });
      },
    );
  });

  test('becomes a single error, whatever value was thrown', () => {
    fuzz([new Error('x')], (value) => void expect(ensureShellfleetError(value).code).toMatch(/^[A-Z_]+$/));
  });

  test('parses as a wake-up that is encoded to the same text, or is refused', () => {
    const valid = [
      { type: 'session', tenant: 't', session: 's' },
      { type: 'terminal', tenant: 't', session: 's', terminal: ID },
      { type: 'sessions', placementClass: 'docker' },
      { type: 'tool', name: 'a' },
    ] as const;
    fuzzText(valid.map(encodeWakeUp), (text) => {
      const parsed = parseWakeUp(text);
      if (parsed !== undefined) expect(parseWakeUp(encodeWakeUp(parsed))).toEqual(parsed);
    });
  });

  test('parses as a command id only if it is a session id and a ULID', () => {
    fuzzText([`s.${ID}`, `a.b.${ID}`], (text) => {
      const parsed = parseCommandId(text);
      if (parsed !== undefined) expect(toCommandId(parsed.sessionId, parsed.entryId)).toBe(text);
    });
  });

  test('parses as a time of finitely many milliseconds, or is refused', () => {
    fuzzText(['30s', '1.5h', '500'], (text) => {
      const ms = parseDurationText(text);
      if (ms !== undefined && text.length < 20) expect(ms).toBeGreaterThanOrEqual(0);
    });
  });

  test('parses as an output chunk that is encoded to the same bytes, or is refused', () => {
    const counts = { seq: 1, rawFrom: 0, rawTo: 3, omittedBytes: 0, lines: 1, offset: 0, data: Buffer.from('abc') };
    const valid = [
      encodeStoredChunk({ stream: 'stdout', ...counts }),
      encodeStoredChunk({
        stream: 'stderr',
        ...counts,
        redactions: { email: 1 },
        blocked: { type: 'x', reason: 'matched' },
      }),
    ];
    fuzzBytes(valid, (bytes) => {
      const entry = decodeStoredChunk(bytes);
      if (entry !== undefined) expect(decodeStoredChunk(encodeStoredChunk(entry))).toEqual(entry);
    });
  });

  test('terminal bytes are unchanged after conversion to text and back', () => {
    fuzzBytes([], (bytes) => void expect(Uint8Array.from(fromTerminalText(toTerminalText(bytes)))).toEqual(bytes));
  });

  test('becomes JSON that parses to an equal value, or is refused with the invalid path', () => {
    fuzz([{ a: [1, { b: null }], __c: 'x' }], (value) => {
      let text: string;
      try {
        text = toJsonText(value, 'the value');
      } catch (error) {
        expect(error).toBeInstanceOf(NotJsonError);
        return;
      }
      expect(toJsonText(tryJson(text), 'the value')).toBe(text);
    });
  });
});
