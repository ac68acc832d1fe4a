import { startTracing } from '@shellfleet/vendor/opentelemetry';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Logger } from '../log/logger.ts';
import { openTracing } from './open-tracing.ts';

vi.mock('@shellfleet/vendor/opentelemetry', () => ({ startTracing: vi.fn(() => ({ end: async () => {} })) }));

const about = { hostId: 'h1', version: '1.2.3' };
const lines: unknown[][] = [];
const write = (...line: unknown[]) => void lines.push(line);
const logger = { info: write, warn: write } as unknown as Logger;

beforeEach(() => {
  lines.length = 0;
  vi.mocked(startTracing).mockClear();
});

describe('the tracing of a worker', () => {
  test('is off, without a word, if nobody asks for it', async () => {
    expect([await openTracing(undefined, about, logger), lines]).toEqual([undefined, []]);
    expect(startTracing).not.toHaveBeenCalled();
  });

  test('is off, with the reason in the log, if it is not supported', async () => {
    expect(await openTracing('grpc is not supported', about, logger)).toBeUndefined();
    expect(lines).toEqual([[{ problem: 'grpc is not supported' }, 'tracing.refused']]);
  });

  test('names the worker, and logs the first of many failures of exports', async () => {
    await openTracing({ encoding: 'json' }, about, logger);
    const [[options]] = vi.mocked(startTracing).mock.calls as [[Parameters<typeof startTracing>[0]]];
    expect(options).toMatchObject({
      encoding: 'json',
      resource: { 'service.name': 'shellfleet-worker', 'service.version': '1.2.3', 'service.instance.id': 'h1' },
    });
    const err = new Error('down');
    for (let failure = 0; failure < 100; failure++) options.onError(err);
    expect(lines).toEqual([['tracing.started'], [{ err }, 'tracing.export-failed']]);
  });
});
