import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { runCli } from '../support/run-cli.ts';

let stage: ClientStage;
let home: string;
beforeAll(async () => {
  stage = await setClientStage();
  home = await mkdtemp(join(tmpdir(), 'sf-doctor-'));
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await rm(home, { recursive: true });
});

interface Finding {
  name: string;
  state: string;
  detail: string;
  fix?: string;
}

async function examine(env: Record<string, string>) {
  const own = { HOME: home, SHELLFLEET_STATE_DIR: home, ...env };
  const { exitCode, stdout, stderr } = await runCli(stage, ['doctor', '--json'], { env: own });
  const lines = stdout.toString().trimEnd().split('\n');
  return { exitCode, stderr, findings: lines.map((line) => JSON.parse(line) as Finding) };
}

const find = (findings: readonly Finding[], name: string) => findings.find((finding) => finding.name === name);

describe('`shellfleet doctor`', () => {
  test('reports each finding with its state, proposes fixes, and changes nothing', async () => {
    const { exitCode, findings } = await examine({});
    for (const finding of findings) {
      expect(finding).toEqual({
        name: expect.stringMatching(/./),
        state: expect.stringMatching(/^(present|missing|installable|absent)$/),
        detail: expect.stringMatching(/./),
        ...(finding.fix === undefined ? {} : { fix: expect.stringMatching(/^[^\n]+$/) }),
      });
      if (finding.state === 'missing') expect(finding.fix, finding.name).toBeDefined();
    }
    expect(exitCode).toBe(findings.some(({ state }) => state === 'missing') ? 1 : 0);
    expect(await readdir(home)).toEqual([]);
  });

  test('reports a Redis without an append-only file and one that does not respond', async () => {
    const { exitCode, findings } = await examine({});
    expect(exitCode).toBe(1);
    expect(find(findings, 'fleet’s redis')).toMatchObject({
      state: 'missing',
      detail: expect.stringContaining('without an append-only file'),
      fix: 'CONFIG SET appendonly yes, then CONFIG REWRITE',
    });
    expect(find(findings, 'seal key')).toMatchObject({ state: 'present' });
    const away = await examine({ SHELLFLEET_REDIS_URL: 'redis://:hush@127.0.0.1:1' });
    expect(find(away.findings, 'fleet’s redis')).toMatchObject({
      state: 'missing',
      detail: expect.stringContaining('127.0.0.1:1'),
      fix: expect.stringMatching(/./),
    });
    expect(JSON.stringify(away)).not.toContain('hush');
  });

  test('reports a Redis with an append-only file as present', async () => {
    await using own = await startOwnRedis('--appendonly', 'yes');
    const { findings } = await examine({ SHELLFLEET_REDIS_URL: own.url });
    expect(find(findings, 'fleet’s redis')).toMatchObject({ state: 'present' });
  });

  test('names the command that starts a fleet if there is none', async () => {
    const { exitCode, findings } = await examine({ SHELLFLEET_REDIS_URL: '', SHELLFLEET_SEAL_KEY: '' });
    expect(exitCode).toBe(1);
    for (const name of ['fleet', 'fleet’s redis', 'seal key'])
      expect(find(findings, name)).toMatchObject({ state: 'missing', fix: expect.stringContaining('shellfleet up') });
  });

  test('prints a table for a person, with one line for each finding', async () => {
    const { stdout } = await runCli(stage, ['doctor'], { env: { HOME: home, SHELLFLEET_STATE_DIR: home } });
    const { findings } = await examine({});
    const lines = stdout.toString().trimEnd().split('\n');
    expect(lines).toHaveLength(findings.length);
    expect(stdout.toString()).toMatch(/missing +fleet’s redis .*Fix: CONFIG SET appendonly yes/);
  });
});
