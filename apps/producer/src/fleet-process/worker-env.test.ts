import { describe, expect, test } from 'vitest';
import { toWorkerEnv } from './worker-env.ts';

const portsOf = (first?: string) =>
  [1, 2, 3].map((number) => {
    const env = first === undefined ? {} : { SHELLFLEET_METRICS_PORT: first };
    const surroundings = { env, fleet: { redisUrl: 'redis://r', sealKeys: ['k'] }, machine: undefined };
    return toWorkerEnv(number, {}, surroundings).SHELLFLEET_METRICS_PORT;
  });

describe('the port for metrics of workers of `up`', () => {
  test('is that of the first one, and rises by one for each', () => {
    expect(portsOf('9464')).toEqual(['9464', '9465', '9466']);
  });

  test('is a free one for each, or none, if that is set', () => {
    expect(portsOf('0')).toEqual(['0', '0', '0']);
    expect(portsOf()).toEqual([undefined, undefined, undefined]);
  });
});
