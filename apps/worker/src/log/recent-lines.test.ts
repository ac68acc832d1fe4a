import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { RecentLines } from './recent-lines.ts';

const lineAt = (time: number) => `{"level":"info","time":${time},"msg":"a.b"}`;

/** Returns the lines 1 to `count`, written at these times. */
function linesOf(count: number, maxChars?: number): RecentLines {
  const recent = new RecentLines('boot', maxChars);
  for (let time = 1; time <= count; time += 1) recent.push(`${lineAt(time)}\n`);
  return recent;
}

const read = (recent: RecentLines, request: object = {}) => recent.read({ type: 'worker-log', ...request }, 60_000);

describe('the last lines of a worker’s log', () => {
  test('are read from the beginning, from a position, from a time, or from the end', async () => {
    const recent = linesOf(4);
    const next = { boot: 'boot', line: 4 };
    const all = [1, 2, 3, 4].map(lineAt);
    expect(await read(recent)).toEqual({ lines: all, next, missed: 0, more: false });
    expect(await read(recent, { after: { boot: 'boot', line: 3 } })).toMatchObject({ lines: [lineAt(4)] });
    expect(await read(recent, { since: 3 })).toMatchObject({ lines: [lineAt(3), lineAt(4)], missed: 0 });
    expect(await read(recent, { tail: 1 })).toMatchObject({ lines: [lineAt(4)], missed: 0 });
    expect(await read(recent, { tail: 0 })).toMatchObject({ lines: [], next });
    expect(await read(recent, { after: { boot: 'boot', line: 9 } })).toMatchObject({ lines: [], next });
  });

  test('are all of them after a position in the log of an earlier process', async () => {
    expect(await read(linesOf(2), { after: { boot: 'earlier', line: 70 } })).toMatchObject({
      lines: [lineAt(1), lineAt(2)],
      missed: 0,
    });
  });

  test('RECENT-1: count those that were dropped, if they were asked for', async () => {
    const length = lineAt(1).length;
    const recent = linesOf(9, length * 8);
    const kept = [4, 5, 6, 7, 8, 9].map(lineAt);
    expect(await read(recent)).toMatchObject({ lines: kept, missed: 3 });
    expect(await read(recent, { after: { boot: 'boot', line: 1 } })).toMatchObject({ lines: kept, missed: 2 });
    expect(await read(recent, { after: { boot: 'boot', line: 3 } })).toMatchObject({ lines: kept, missed: 0 });
    expect(await read(recent, { tail: 2 })).toMatchObject({ lines: kept.slice(-2), missed: 0 });
    expect(await read(recent, { since: 6 })).toMatchObject({ lines: kept.slice(2), missed: 0 });
    expect(await read(recent, { since: 2 })).toMatchObject({ lines: kept, missed: 3 });
  });

  test('RECENT-2: come in pages', async () => {
    const recent = new RecentLines('boot');
    const long = `"${'x'.repeat(100_000)}"`;
    for (let index = 0; index < 3; index += 1) recent.push(long);
    const first = await read(recent);
    expect(first).toMatchObject({ lines: [long], more: true });
    const second = await read(recent, { after: first.next });
    expect(await read(recent, { after: second.next })).toMatchObject({ lines: [long], more: false });
  });

  test('are waited for when there is none', async () => {
    const recent = linesOf(1);
    const waits = read(recent, { after: { boot: 'boot', line: 1 }, waits: true });
    recent.push(lineAt(2));
    expect(await waits).toMatchObject({ lines: [lineAt(2)] });
    expect(await recent.read({ type: 'worker-log', tail: 0, waits: true }, 1)).toMatchObject({ lines: [] });
  });

  test('are waited for by many readers, without a warning of Node', async () => {
    const recent = linesOf(1);
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    onTestFinished(() => warned.mockRestore());
    const request = { after: { boot: 'boot', line: 1 }, waits: true };
    const readers = Array.from({ length: 12 }, () => read(recent, request));
    recent.push(lineAt(2));
    expect((await Promise.all(readers)).map(({ lines }) => lines)).toEqual(Array(12).fill([lineAt(2)]));
    expect(warned).not.toHaveBeenCalled();
  });
});
