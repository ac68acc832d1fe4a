import fs, { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Journal, type JournalOptions, openJournal } from './journal.ts';

const RETENTION_MS = 24_000;

let directory: string;
const failures: unknown[] = [];
const opened: Journal[] = [];

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date'] });
  directory = mkdtempSync(join(tmpdir(), 'journal-'));
  failures.length = 0;
});
afterEach(() => {
  for (const journal of opened.splice(0)) journal.close();
  vi.useRealTimers();
  rmSync(directory, { recursive: true, force: true });
});

/** Opens the journal as the next process of the worker does. The one before may have been killed. */
function open(options: Partial<JournalOptions> = {}): Journal {
  const onWriteFailed = (error: unknown) => void failures.push(error);
  const journal = openJournal({ directory, retentionMs: RETENTION_MS, onWriteFailed, ...options });
  opened.push(journal);
  return journal;
}

const begun = (id: string) => ({ namespace: 'ns', tenant: 't', of: 's', id });
const files = () => readdirSync(directory).sort();

describe('the journal', () => {
  test('knows a recorded id in this process and the next, for its session only', () => {
    open().record(begun('a'), '7');
    for (const journal of [opened[0]!, open()]) {
      expect([begun('a'), begun('b'), { ...begun('a'), of: 'x' }].map(journal.knows)).toEqual([true, false, false]);
    }
    expect(readFileSync(join(directory, files()[0]!), 'utf8')).toMatch(/^[0-9a-f]{16} ns t s a 7\n$/);
  });

  test('knows each of many recorded ids, and no other id', () => {
    const journal = open();
    const ids = Array.from({ length: 20_000 }, (_, index) => `id-${index}`);
    for (const id of ids) journal.record(begun(id), '7');
    const next = open();
    expect(ids.filter((id) => !next.knows(begun(id)) || !journal.knows(begun(id)))).toEqual([]);
    expect(ids.filter((id) => next.knows(begun(`${id}-`)))).toEqual([]);
  });

  test('ignores an incomplete line of a killed process, and reads the others', () => {
    const journal = open();
    journal.record(begun('a'), '7');
    journal.record(begun('b'), '7');
    const path = join(directory, files()[0]!);
    truncateSync(path, statSync(path).size - 4);
    const next = open();
    next.record(begun('c'), '7');
    const last = open();
    expect(['a', 'b', 'c'].map((id) => last.knows(begun(id)))).toEqual([true, false, true]);
  });

  test('ignores bytes that are no line of the journal', () => {
    open().record(begun('a'), '7');
    appendFileSync(join(directory, files()[0]!), Buffer.from([0, 255, 10, 10, 32, 10]));
    expect(open().knows(begun('a'))).toBe(true);
  });

  test('keeps an id for the retention, and removes older segments', () => {
    const journal = open();
    for (let hour = 0; hour < 100; hour += 1) {
      journal.record(begun(`h${hour}`), '7');
      vi.setSystemTime(Date.now() + RETENTION_MS / 24);
      expect(journal.knows(begun(`h${Math.max(0, hour - 23)}`))).toBe(true);
    }
    expect(journal.knows(begun('h70'))).toBe(false);
    expect(files().length).toBeLessThanOrEqual(27);
    vi.setSystemTime(Date.now() + 3 * RETENTION_MS);
    expect(open().knows(begun('h99'))).toBe(false);
    expect(files()).toEqual([]);
  });

  test('drops the oldest ids beyond the limit, even within the retention', () => {
    const journal = open({ mostIds: 2_400 });
    const early: number[] = [];
    for (let index = 0; index < 10_000; index += 1) {
      journal.record(begun(`id-${index}`), '7');
      if (index >= 2_300 && !journal.knows(begun(`id-${index - 2_300}`))) early.push(index - 2_300);
    }
    expect(early).toEqual([]);
    const known = Array.from({ length: 10_000 }, (_, index) => journal.knows(begun(`id-${index}`)));
    expect(known.lastIndexOf(false)).toBeLessThan(10_000 - 2_300);
    expect(known.filter(Boolean).length).toBeLessThanOrEqual(2_500);
    expect(files().length).toBeLessThanOrEqual(25);
  });

  test('reports a read-only directory, and keeps its ids until the process ends', () => {
    const journal = open();
    rmSync(directory, { recursive: true, force: true });
    journal.record(begun('a'), '7');
    journal.record(begun('b'), '7');
    expect([journal.knows(begun('a')), journal.knows(begun('b')), failures.length]).toEqual([true, true, 1]);
  });

  test('reports a full disk once, and later passes new ids to the next process', () => {
    const journal = open();
    journal.record(begun('a'), '7');
    const write = vi.spyOn(fs, 'writeSync').mockImplementation(() => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    });
    syncBuiltinESMExports();
    for (const id of ['b', 'c']) journal.record(begun(id), '7');
    write.mockRestore();
    syncBuiltinESMExports();
    journal.record(begun('d'), '7');
    const next = open();
    expect(failures).toHaveLength(1);
    expect(['a', 'b', 'c', 'd'].map((id) => journal.knows(begun(id)))).toEqual([true, true, true, true]);
    expect(['a', 'b', 'c', 'd'].map((id) => next.knows(begun(id)))).toEqual([true, false, false, true]);
  });

  test("keeps a segment's last id for the whole retention, and not much longer", () => {
    const journal = open();
    const spanMs = RETENTION_MS / 24;
    journal.record(begun('first'), '7');
    vi.setSystemTime(Date.now() + spanMs - 1);
    journal.record(begun('last'), '7');
    // Each new segment drops those that are too old.
    vi.setSystemTime(Date.now() + RETENTION_MS);
    journal.record(begun('later'), '7');
    expect(['first', 'last'].map((id) => journal.knows(begun(id)))).toEqual([true, true]);
    vi.setSystemTime(Date.now() + spanMs + 1);
    journal.record(begun('latest'), '7');
    expect(['first', 'last', 'later'].map((id) => journal.knows(begun(id)))).toEqual([false, false, true]);
  });
});
