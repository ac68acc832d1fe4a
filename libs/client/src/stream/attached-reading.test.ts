import { type LogRequest, sessionKeys } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { requestFromHost } from '../hosts/request-from-host.ts';
import { AttachedReading } from './attached-reading.ts';

vi.mock(import('../hosts/request-from-host.ts'), () => ({ requestFromHost: vi.fn() }));
vi.mock(import('@shellfleet/mailbox'), async (original) => ({
  ...(await original()),
  readRecord: vi.fn(async () => ({ host: 'h1' }) as never),
}));
beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.mocked(requestFromHost).mockReset();
});

const ENTRY = '01J00000000000000000000000';
const keys = sessionKeys('ns' as never, 'tenant' as never, 's' as never);

/** Opens a log that has one byte per page. */
function open() {
  const asked: string[] = [];
  vi.mocked(requestFromHost).mockImplementation(async (_context, _host, _keys, request) => {
    const { attached, from } = request as LogRequest;
    asked.push(`${attached} ${from.stdout}`);
    const piece = { stream: 'stdout' as const, offset: from.stdout, data: Buffer.from('x') };
    return { pieces: attached === 'waits' ? [] : [piece], more: true } as never;
  });
  return { asked, reading: new AttachedReading({} as never, keys, ENTRY) };
}

describe('attached reading', () => {
  // ATTACHED-3
  test('requests the next page after the earlier page was taken', async () => {
    const { asked, reading } = open();
    let pages = 0;
    reading.start(() => {
      pages += 1;
    });
    await vi.advanceTimersByTimeAsync(1_000);
    expect([asked, pages]).toEqual([['reads 0'], 1]);
    expect(reading.take().map(({ offset }) => offset)).toEqual([0]);
    await vi.advanceTimersByTimeAsync(0);
    expect([asked, pages]).toEqual([['reads 0', 'reads 1'], 2]);
    reading[Symbol.dispose]();
  });

  // ATTACHED-2
  test('sends a heartbeat with the consumed position every 2 s while nothing is taken', async () => {
    const { asked, reading } = open();
    reading.start(() => {});
    await vi.advanceTimersByTimeAsync(4_100);
    reading.consumed({ stdout: 1, stderr: 0 });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(asked).toEqual(['reads 0', 'waits 0', 'waits 0', 'waits 1']);
    reading[Symbol.dispose]();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toHaveLength(4);
  });

  test('repeats a failed request from the same position', async () => {
    vi.useRealTimers();
    const { asked, reading } = open();
    vi.mocked(requestFromHost).mockImplementationOnce(async () => {
      throw new Error('away');
    });
    reading.start(() => {});
    await expect.poll(() => asked, { timeout: 10_000 }).toEqual(['reads 0']);
    reading[Symbol.dispose]();
  });

  test('restarts at the beginning when the command runs again', async () => {
    const { asked, reading } = open();
    reading.start(() => {});
    await vi.advanceTimersByTimeAsync(0);
    reading.take();
    await vi.advanceTimersByTimeAsync(0);
    reading.restart();
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toEqual(['reads 0', 'reads 1', 'reads 0']);
    reading[Symbol.dispose]();
  });

  test('ignores a late reply for the first attempt when the command runs again', async () => {
    const { asked, reading } = open();
    const late = Promise.withResolvers<never>();
    vi.mocked(requestFromHost).mockImplementationOnce(() => late.promise);
    reading.start(() => {});
    await vi.advanceTimersByTimeAsync(0);
    reading.restart();
    const ofFirstAttempt = { stream: 'stdout', offset: 0, data: Buffer.from('of the first') };
    late.resolve({ pieces: [ofFirstAttempt], more: true } as never);
    await vi.advanceTimersByTimeAsync(0);
    expect([asked, reading.take().map(({ data }) => data.toString())]).toEqual([['reads 0'], ['x']]);
    reading[Symbol.dispose]();
  });

  test('reads the rest of an ended command regardless of a late reply', async () => {
    const { asked, reading } = open();
    const late = Promise.withResolvers<never>();
    vi.mocked(requestFromHost).mockImplementationOnce(() => late.promise);
    reading.start(() => {});
    await vi.advanceTimersByTimeAsync(0);
    const rest = reading.rest('h1', { stdout: 0, stderr: 0 }, undefined);
    const offsets: (number | undefined)[] = [];
    const next = async () => void offsets.push((await rest.next()).value?.offset);
    await next();
    late.resolve({ pieces: [{ stream: 'stdout', offset: 0, data: Buffer.alloc(9) }] } as never);
    await vi.advanceTimersByTimeAsync(0);
    await next();
    await next();
    expect([asked, offsets]).toEqual([
      ['reads 0', 'reads 1', 'reads 2'],
      [0, 1, 2],
    ]);
  });
});
