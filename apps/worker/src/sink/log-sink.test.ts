import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { LogSink, type LogSinkOptions } from './log-sink.ts';

const target = { type: 'unix', path: '/sink' } as const;

function openSink(options: LogSinkOptions = {}) {
  const delivered: string[] = [];
  const state = { problem: undefined as Error | undefined };
  const logged: Record<string, unknown>[] = [];
  const sink = new LogSink(target, {
    collectMs: 1,
    async deliver(_target, text) {
      if (state.problem !== undefined) throw state.problem;
      delivered.push(text);
    },
    ...options,
  });
  sink.reportTo(pino({ base: null }, { write: (line) => void logged.push(JSON.parse(line)) }));
  onTestFinished(() => sink.close());
  return { sink, delivered, state, logged };
}

describe('the sink of a log', () => {
  test('gets lines in their order, together with those that follow at once', async () => {
    const { sink, delivered } = openSink();
    for (const line of ['1\n', '2\n', '3\n']) sink.push(line);
    await vi.waitFor(() => expect(delivered).toEqual(['1\n2\n3\n']));
    sink.push('4\n');
    await vi.waitFor(() => expect(delivered).toEqual(['1\n2\n3\n', '4\n']));
    expect(sink).toMatchObject({ waiting: 0, dropped: 0, isUp: true });
  });

  test('SINK-2, SINK-3: gets what waited when it is back; the log counts the rest', async () => {
    const { sink, delivered, state, logged } = openSink({ maxChars: 6 });
    state.problem = new Error('refused');
    for (const line of ['1\n', '2\n', '3\n', '4\n', '5\n']) sink.push(line);
    await vi.waitFor(() => expect(sink.isUp).toBe(false));
    expect(sink).toMatchObject({ waiting: 3, dropped: 2 });
    expect(logged).toEqual([
      expect.objectContaining({ sink: 'log', problem: 'refused', dropped: 2, msg: 'sink.failed' }),
    ]);
    state.problem = undefined;
    await vi.waitFor(() => expect(sink.isUp).toBe(true), 3_000);
    expect(delivered).toEqual(['1\n2\n3\n']);
    expect(logged[1]).toMatchObject({ sink: 'log', msg: 'sink.recovered' });
  });

  test('gets the last lines when it is closed', async () => {
    const { sink, delivered } = openSink();
    await delay(5);
    sink.push('last\n');
    await sink.close();
    expect(delivered).toEqual(['last\n']);
  });

  test('gets all batches that wait when it is closed', async () => {
    const { sink, delivered, logged } = openSink({ collectMs: 60_000 });
    const lines = Array.from({ length: 5 }, (_, index) => `${`${index}`.repeat(200_000)}\n`);
    for (const line of lines) sink.push(line);
    await sink.close();
    expect(delivered.length).toBeGreaterThan(2);
    expect(delivered.join('')).toBe(lines.join(''));
    expect(logged).toEqual([]);
  });

  test('SINK-2: is closed after a while, and the log counts what it did not get', async () => {
    const { sink, logged } = openSink({ closeWithinMs: 20, deliver: () => new Promise(() => {}) });
    for (const line of ['1\n', '2\n']) sink.push(line);
    await sink.close();
    expect(sink.dropped).toBe(2);
    expect(logged).toEqual([expect.objectContaining({ sink: 'log', dropped: 2, msg: 'sink.closed' })]);
  });
});
