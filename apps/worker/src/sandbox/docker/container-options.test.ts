import { readFile } from 'node:fs/promises';
import { planDocker } from '@shellfleet/policy';
import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { toContainerOptions } from './container-options.ts';

// Reads the table of docs/sandbox-limits.md, which lists every option of a container.

async function readTable(): Promise<Map<string, string>> {
  const page = await readFile(new URL('../../../../../docs/sandbox-limits.md', import.meta.url), 'utf8');
  const section = page.split('| Option | Value | Why |')[1]?.split('\n\n')[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| '));
  return new Map(
    rows.map((line) => line.split('|').map((cell) => cell.trim())).map(([, name = '', value = '']) => [name, value]),
  );
}

function optionsOf(spec: SessionSpec) {
  const bounds = { memoryBytes: 2 ** 40, cpus: 64, pids: 4_096, diskQuota: true };
  const allowances = {
    images: 'any' as const,
    defaultImage: 'slim',
    users: [],
    workspaces: ['/srv'],
    runtimes: ['runsc'],
    bounds,
  };
  const { HostConfig: host = {} } = toContainerOptions({
    plan: planDocker(sessionSpecSchema.parse(spec), allowances),
    image: `sha256:${'a'.repeat(64)}`,
    workspaceIdentity: '1:2',
    transport: 'socket',
    secrets: { token: 'token', syncWord: 'word' },
    labels: {},
    name: 'name',
    network: 'none',
    keeperSource: '/state/keeper',
    hasPasswd: true,
    shell: [],
    volumes: ['/data', '/tmp', '/workspace'],
  });
  return host as Record<string, unknown>;
}

const EVERYTHING: SessionSpec = {
  policy: { type: 'docker', readOnlyRootfs: true, runtime: 'runsc' },
  workspace: '/srv/w',
  limits: { diskBytes: 2 ** 30, fileSizeBytes: 2 ** 30 },
};

describe('docs/sandbox-limits.md', () => {
  // S0-36, S0-37
  test('lists exactly the options that are sent to the engine', async () => {
    const sent = [...(await readTable())].filter(([, value]) => value !== 'not sent').map(([name]) => name);
    expect(Object.keys(optionsOf(EVERYTHING)).sort()).toEqual(sent.sort());
    expect(sent).toEqual(expect.arrayContaining(Object.keys(optionsOf({}))));
  });

  test('each option with a fixed value on the page has it in every container', async () => {
    const fixed = [...(await readTable())].flatMap(([name, value]) => {
      const [, json] = /^`([^`]+)`$/.exec(value) ?? [];
      return json === undefined || !/^(?:[{["\d]|true|false)/.test(json) ? [] : [[name, JSON.parse(json)] as const];
    });
    expect(fixed.map(([name]) => name)).toEqual(
      expect.arrayContaining(['CapDrop', 'Init', 'OomScoreAdj', 'Privileged']),
    );
    for (const spec of [{}, EVERYTHING]) expect(optionsOf(spec)).toMatchObject(Object.fromEntries(fixed));
  });
});
