import type { FileOperation } from '@shellfleet/protocol';
import { sessionKeys } from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import { describe, expect, test } from 'vitest';
import { NO_AUDIT } from '../audit/audit.ts';
import type { FileCallEnd } from '../shell/shell-files.ts';
import { FileCalls } from './file-calls.ts';

const keys = sessionKeys('ns', 'tenant', 's');
const WRITE: FileOperation = { name: 'mkdir', path: '/d' };
const READ: FileOperation = { name: 'stat', path: '/d' };

/** The file calls of a session whose keeper is the test: each call waits in `asked` until the test ends it. */
function stage() {
  const asked: { id: string; end(end: FileCallEnd): void }[] = [];
  const state = { ready: true, held: true };
  const call = (id: string) => new Promise<FileCallEnd>((end) => asked.push({ id, end }));
  const shell = {
    get ready() {
      return state.ready;
    },
    epoch: 7,
    live: { files: { call } },
  };
  const context = {
    ...{ owner: { keys }, shell },
    generation: 'g',
    signal: new AbortController().signal,
    audit: NO_AUDIT,
    takesRealPaths: () => false,
    redaction: { value: (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll('/hush', '/[REDACTED]')) },
    sealer: {
      openSigned: (sealed: string, place: unknown) => {
        const { place: sealedFor, operation } = JSON.parse(sealed);
        expect(place).toEqual(sealedFor);
        return { plain: operation, signature: undefined };
      },
    },
  };
  const calls = new FileCalls({
    context: context as never,
    isHeld: () => state.held,
    admit: async (_file, begin) => begin(),
  });
  const ask = (id: string, operation: FileOperation) => {
    const place = sealPlace('file', keys, { operation: id, generation: 'g' });
    const sealed = JSON.stringify({ place, operation: JSON.stringify(operation) });
    return calls.reply({ type: 'file', generation: 'g', operation: id, sealed });
  };
  return { asked, state, ask };
}

const done: FileCallEnd = { type: 'done', stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };

describe('file calls', () => {
  test('do a step only once if it is requested again while it runs (FILES-1)', async () => {
    const { asked, ask } = stage();
    const answers = [ask('a', WRITE), ask('a', WRITE)];
    await expect.poll(() => asked.length).toBe(1);
    asked[0]?.end(done);
    expect(await Promise.all(answers)).toEqual([
      { state: 'done', epoch: 7, reply: {} },
      { state: 'done', epoch: 7, reply: {} },
    ]);
    expect(asked.map(({ id }) => id)).toEqual(['a']);
  });

  test('run four steps at a time, queue 64, and refuse the next (FILES-2)', async () => {
    const { asked, ask } = stage();
    const answers = Array.from({ length: 68 }, (_, index) => ask(`${index}`, WRITE));
    await expect(ask('more', WRITE)).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
    for (let index = 0; index < 68; index++) {
      await expect.poll(() => asked.length).toBe(Math.min(68, index + 4));
      asked[index]?.end(done);
    }
    expect(new Set((await Promise.all(answers)).map(({ state }) => state))).toEqual(new Set(['done']));
  });

  test('give the keeper nothing without a shell or after the end of the lease (FILES-3)', async () => {
    const { asked, state, ask } = stage();
    state.held = false;
    expect(await ask('a', WRITE)).toEqual({ state: 'no-shell' });
    Object.assign(state, { held: true, ready: false });
    expect(await ask('b', WRITE)).toEqual({ state: 'no-shell' });
    expect(asked).toEqual([]);
  });

  test.each<[string, FileOperation, FileCallEnd, unknown]>([
    [
      'a change that was done on an earlier connection',
      WRITE,
      { type: 'done-before', failure: undefined },
      { state: 'done' },
    ],
    ['a read whose reply is gone', READ, { type: 'done-before', failure: undefined }, { state: 'unknown' }],
    ['a change that failed on an earlier connection', WRITE, { type: 'done-before', failure: 'denied' }, 'FILE_DENIED'],
    ['a change when the connection broke', WRITE, { type: 'gone' }, { state: 'unknown' }],
    ['a read that was killed', READ, { type: 'killed' }, { state: 'unknown' }],
    ['a change that was killed', WRITE, { type: 'killed' }, 'CONTAINER_LOST'],
  ])('end as expected after %s', async (_what, operation, end, expected) => {
    const { asked, ask } = stage();
    const reply = ask('a', operation);
    await expect.poll(() => asked.length).toBe(1);
    asked[0]?.end(end);
    if (typeof expected === 'string') await expect(reply).rejects.toMatchObject({ code: expected });
    else expect(await reply).toMatchObject(expected as object);
  });

  test('redact secrets in the path of an error', async () => {
    const { asked, ask } = stage();
    const reply = ask('a', { name: 'stat', path: '/hush' });
    await expect.poll(() => asked.length).toBe(1);
    asked[0]?.end({ type: 'failed', failure: 'not-found', stderr: Buffer.from('/hush: No such file') });
    const error = await reply.catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'FILE_NOT_FOUND', message: expect.stringContaining('/[REDACTED]') });
    expect(JSON.stringify(error)).not.toContain('hush');
  });
});
