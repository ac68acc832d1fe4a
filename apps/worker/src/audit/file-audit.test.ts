import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open as openFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditEvent, AuditHead, AuditRecord } from '@shellfleet/protocol';
import { auditKeys, createSealKey, verifyAudit } from '@shellfleet/sealing';
import { pino } from 'pino';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { AuditChain } from './audit-chain.ts';
import { openAudit } from './file-audit.ts';

const root = mkdtempSync(join(tmpdir(), 'shellfleet-audit-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const sealKeys = [createSealKey()];
const KEYS = auditKeys(sealKeys, { namespace: 'n', host: 'h', tenant: 't' });
let directories = 0;
const freshDirectory = () => join(root, `${directories++}`);

const event = (entry: string): AuditEvent => ({
  ...{ type: 'start', session: 's', generation: 'g', entry },
  ...{ fence: 1, epoch: 1 },
});
const open = (directory: string, anchored = new Map<string, AuditHead>()) =>
  openAudit({
    ...{
      directory,
      namespace: 'n',
      hostId: 'h',
      stateDirectoryId: 'f',
      sealKeys,
      retentionMs: 60_000,
      noted: true,
      anchored,
    },
    logger: pino({ level: 'silent' }),
  });

function verify(directory: string, heads: AuditHead[] = []) {
  const events: AuditEvent[] = [];
  const path = join(directory, 't-t');
  const segments = readdirSync(path)
    .sort()
    .map((name) => ({ name, text: readFileSync(join(path, name), 'utf8') }));
  const { findings } = verifyAudit(segments, KEYS, heads, (record: AuditRecord) => events.push(record.event));
  return { events, findings };
}

describe('the audit of a host', () => {
  test('a recorded event, and events noted before it, are on disk when its call resolves', async () => {
    const directory = freshDirectory();
    const audit = await open(directory);
    audit.note('t', () => event('a'));
    await audit.record('t', event('b'));
    expect(verify(directory)).toEqual({ events: [event('a'), event('b')], findings: [] });
    const path = join(directory, 't-t');
    expect(readdirSync(path).map((name) => statSync(join(path, name)).mode & 0o777)).toEqual([0o600]);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    await audit.close();
  });

  test('a recorded event is synced when its call resolves, a noted one is not', async () => {
    const directory = freshDirectory();
    const audit = await open(directory);
    await using handle = await openFile(join(directory, 'any'), 'w');
    const synced = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'datasync');
    try {
      await audit.record('t', event('a'));
      expect(synced).toHaveBeenCalledTimes(1);
      audit.note('t', () => event('b'));
      await audit.close();
      expect(verify(directory).events).toEqual([event('a'), event('b')]);
      expect(synced).toHaveBeenCalledTimes(1);
    } finally {
      synced.mockRestore();
    }
  });

  test('a noted event is written without another call, and when the audit is closed', async () => {
    const directory = freshDirectory();
    const audit = await open(directory);
    audit.note('t', () => event('a'));
    await expect.poll(() => verify(directory).events, { timeout: 20_000 }).toEqual([event('a')]);
    audit.note('t', () => event('b'));
    await audit.close();
    expect(verify(directory).events).toEqual([event('a'), event('b')]);
  });

  test('when many noted events wait, they are written early, in order, and leave the memory', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      const directory = freshDirectory();
      const audit = await open(directory);
      const events = Array.from({ length: 200 }, (_, n) => event(`${n}`));
      const describe = vi.fn((noted: AuditEvent) => noted);
      for (const noted of events) audit.note('t', () => describe(noted));
      await new Promise((resolve) => setImmediate(resolve));
      expect(describe.mock.calls).toEqual(events.map((noted) => [noted]));
      await audit.close();
      expect(verify(directory)).toEqual({ events, findings: [] });
    } finally {
      vi.useRealTimers();
    }
  });

  test('another process continues the chain, and reports an incomplete last line', async () => {
    const directory = freshDirectory();
    const first = await open(directory);
    await first.record('t', event('a'));
    const path = join(directory, 't-t', '000000000001.jsonl');
    appendFileSync(path, '{"mac":"ha');
    const second = await open(directory);
    await second.record('t', event('b'));
    const { events, findings } = verify(directory);
    expect(events).toEqual([event('a'), { type: 'interrupted' }, event('b')]);
    expect(findings.map(({ type }) => type)).toEqual(['torn']);
  });

  test('records that disappear between two processes are reported permanently', async () => {
    const directory = freshDirectory();
    const first = await open(directory);
    await first.record('t', event('a'));
    const path = join(directory, 't-t', '000000000001.jsonl');
    const { size } = statSync(path);
    await first.record('t', event('b'));
    const anchored = new Map(first.heads());
    truncateSync(path, size);
    const second = await open(directory, anchored);
    await second.record('t', event('c'));
    const { events, findings } = verify(directory);
    expect(events).toEqual([event('a'), { type: 'cut', anchored: 2, found: 1 }, event('c')]);
    expect(findings.map(({ type }) => type)).toEqual(['cut-off']);
  });

  test('an event that cannot be recorded is refused, and noted ones are counted', async () => {
    const directory = freshDirectory();
    const audit = await open(directory);
    // A file takes the place of the directory of the records.
    rmSync(join(directory, 't-t'), { recursive: true, force: true });
    writeFileSync(join(directory, 't-t'), '');
    audit.note('t', () => event('a'));
    await expect(audit.record('t', event('b'))).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' });
    rmSync(join(directory, 't-t'));
    await audit.record('t', event('c'));
    expect(verify(directory).events).toEqual([{ type: 'lost', count: 1 }, event('c')]);
  });

  test('old files are removed as a whole, and the other files still verify', async () => {
    const directory = join(freshDirectory(), 't-t');
    const [key] = KEYS;
    if (key === undefined) throw new Error('no key');
    const chain = new AuditChain({ directory, key, keys: KEYS, retentionMs: 0, segmentBytes: 1 });
    await chain.open(undefined);
    for (const entry of ['a', 'b', 'c']) {
      await chain.write([event(entry)], 'written');
      await expect
        .poll(() => Date.now() > statSync(join(directory, readdirSync(directory).sort().at(-1) ?? '')).mtimeMs)
        .toBe(true);
    }
    const { events, findings } = verify(join(directory, '..'), [chain.head]);
    expect(findings).toEqual([]);
    expect(events).toEqual([event('b'), { type: 'pruned', through: 1 }, event('c')]);
  });

  test('a file stays until its last record is older than the retention, not its first', async () => {
    vi.useFakeTimers({ now: 1_000_000, toFake: ['Date'] });
    try {
      const directory = join(freshDirectory(), 't-t');
      const [key] = KEYS;
      if (key === undefined) throw new Error('no key');
      const retentionMs = 24_000;
      const chain = new AuditChain({ directory, key, keys: KEYS, retentionMs });
      await chain.open(undefined);
      await chain.write([event('first')], 'written');
      vi.setSystemTime(Date.now() + 1_000);
      await chain.write([event('last')], 'written');
      const lastAt = Date.now();
      vi.setSystemTime(lastAt + 1_000);
      // This record goes to a new file: the file that is being written is never removed.
      await chain.write([event('next')], 'written');
      vi.setSystemTime(lastAt + retentionMs);
      await chain.write([event('later')], 'written');
      const kept = ['first', 'last', 'next', 'later'].map(event);
      expect(verify(join(directory, '..'), [chain.head]).events).toEqual(kept);
      vi.setSystemTime(lastAt + retentionMs + 1);
      await chain.write([event('latest')], 'written');
      expect(verify(join(directory, '..'), [chain.head])).toEqual({
        events: [event('next'), event('later'), { type: 'pruned', through: 2 }, event('latest')],
        findings: [],
      });
    } finally {
      vi.useRealTimers();
    }
  });
});
