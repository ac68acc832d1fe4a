import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { OTHER_ROWS } from '../bench/plan.ts';

const positive = z.number().positive();
const spreadOf = (value: z.ZodNumber) =>
  z.strictObject({ median: value, min: value, max: value, rounds: z.array(value).min(1) });
const spread = spreadOf(positive);
const cpu = spreadOf(z.number()).optional();
const load = z.strictObject({ commandsPerSecond: spread, redisCpuUs: cpu, producerCpuUs: cpu, workerCpuUs: cpu });
const latency = z.strictObject({ p50: spread, p99: spread });
const idle = z.strictObject({ true: latency, 'echo hi': latency });
const row = z.strictObject({ idle, few: load, many: load });
const rowOfFew = z.strictObject({ idle, few: load });
const figuresSchema = z.object({
  at: z.iso.datetime(),
  machine: z.object({ cpus: positive, node: z.string(), redis: z.string(), docker: z.string() }),
  plan: z.object({ quick: z.literal(true), gate: z.literal(false) }),
  rows: z.strictObject({
    floor: row,
    bullmq: row,
    'docker-exec': rowOfFew,
    'docker-exec-cli': rowOfFew,
    'docker-attach': rowOfFew,
    'node-pty': rowOfFew,
    shellfleet: row,
  }),
  sessions: z.object({
    startColdMs: spread,
    redisBytesPerIdleSession: positive,
    connections: z.strictObject({ worker: positive, producer: positive, unnamed: z.number().int().min(0) }),
  }),
  targets: z
    .array(z.object({ name: z.string(), value: z.number(), limit: z.number(), passed: z.boolean() }))
    .length(17),
  extra: z.object({ peers: z.array(z.object({ name: z.string(), idle, commandsPerSecond: spread })).min(2) }),
});

describe('the benchmark', () => {
  it('measures every row in one run, and writes down the figures', { timeout: 120_000 }, async () => {
    const program = join(checkoutRoot, 'tests/bench/main.ts');
    const flags = ['--conditions=@shellfleet/source', '--no-warnings'];
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, program, '--quick', '--no-gate']);
    for (const name of [...OTHER_ROWS, 'shellfleet']) expect(stdout).toMatch(new RegExp(`^\\| ${name} `, 'm'));
    const path = stdout.trim().split('\n').at(-1) ?? '';
    figuresSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  });
});
