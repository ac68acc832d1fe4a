import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { judge } from '../bench/targets.ts';

const positive = z.number().positive();
const spread = z.strictObject({ median: positive, min: positive, max: positive });
const cpu = z.strictObject({ median: z.number(), min: z.number(), max: z.number() }).optional();
const load = z.strictObject({ commandsPerSecond: spread, redisCpuUs: cpu, producerCpuUs: cpu, workerCpuUs: cpu });
const latency = z.strictObject({ p50: spread, p99: spread });
const row = z.strictObject({ idle: z.strictObject({ true: latency, 'echo hi': latency }), few: load, many: load });
const figuresSchema = z.object({
  at: z.iso.datetime(),
  machine: z.object({ cpus: positive, node: z.string(), redis: z.string(), docker: z.string() }),
  plan: z.object({ quick: z.literal(true), gate: z.literal(false) }),
  rows: z.strictObject({ floor: row, bullmq: row, 'docker-exec': row, shellfleet: row }),
  sessions: z.object({
    startColdMs: spread,
    redisBytesPerIdleSession: positive,
    connections: z.strictObject({ worker: positive, producer: positive, unnamed: z.number().int().min(0) }),
  }),
  targets: z.array(z.object({ name: z.string(), value: z.number(), limit: z.number(), passed: z.boolean() })).length(6),
});

describe('the benchmark', () => {
  it('measures every row in one run and writes down what it found', { timeout: 120_000 }, async () => {
    const program = join(checkoutRoot, 'tests/bench/main.ts');
    const flags = ['--conditions=@shellfleet/source', '--no-warnings'];
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, program, '--quick', '--no-gate']);
    for (const name of ['floor', 'bullmq', 'docker-exec', 'shellfleet'])
      expect(stdout).toMatch(new RegExp(`^\\| ${name} `, 'm'));
    const path = stdout.trim().split('\n').at(-1) ?? '';
    figuresSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  });

  it('fails each target that a run misses', () => {
    const exactly = (value: number) => ({ median: value, min: value, max: value });
    const figures = (latencyMs: number, perSecond: number, redisCpuUs: number) => {
      const both = { p50: exactly(latencyMs), p99: exactly(latencyMs) };
      const same = {
        commandsPerSecond: exactly(perSecond),
        redisCpuUs: exactly(redisCpuUs),
        producerCpuUs: undefined,
        workerCpuUs: undefined,
      };
      return { idle: { true: both, 'echo hi': both }, few: same, many: same };
    };
    const judgeWith = (shellfleet: ReturnType<typeof figures>, kilobytes: number, connections: number) =>
      judge({
        rows: {
          floor: figures(0.2, 9_000, 50),
          bullmq: figures(1, 3_000, 100),
          'docker-exec': figures(50, 25, 0),
          shellfleet,
        },
        sessions: {
          startColdMs: exactly(300),
          redisBytesPerIdleSession: kilobytes * 1_024,
          redisCpuUsPerIdleSession: 1,
          redisCpuUsOfEmptyFleet: 1,
          connections: { worker: 3, producer: 3, unnamed: connections },
          workerRssBytes: undefined,
        },
      }).map(({ passed }) => passed);
    expect(judgeWith(figures(2, 750, 100), 12, 2)).toEqual(Array(6).fill(true));
    expect(judgeWith(figures(2.1, 740, 101), 12.1, 3)).toEqual(Array(6).fill(false));
  });
});
