import { type SandboxOptions, sessionSpecSchema } from '@shellfleet/protocol';
import { expect, test } from 'vitest';
import { offeredClasses, parseClass, placementClass, toPlacement } from './placement.ts';
import { offeredWants, wantsOf } from './wants.ts';

const wanted = (sandbox: SandboxOptions | undefined, policy: 'docker' | 'host' = 'docker') =>
  wantsOf(sessionSpecSchema.parse({ policy, sandbox }));

test('what every host serves is no want, and neither is anything under the policy that has no sandbox', () => {
  expect(wanted(undefined)).toEqual([]);
  expect(wanted({ mode: 'read-only', network: 'restricted' })).toEqual([]);
  expect(wanted({ mode: 'external', network: 'full' }, 'host')).toEqual([]);
});

test('a relaxed mode and a relaxed network are wants, and so is to have no sandbox', () => {
  expect(wanted({ mode: 'external', network: 'full' })).toEqual(['mode-external', 'network-full']);
  expect(wanted({ network: 'limited', allowedHosts: ['example.org'] })).toEqual(['network-limited']);
  expect(wanted({ selection: 'forbid' })).toEqual(['mode-danger-full-access']);
});

test('a container runtime is a want of the policy docker', () => {
  const spec = sessionSpecSchema.parse({ policy: { type: 'docker', runtime: 'runsc' } });
  expect(wantsOf(spec)).toEqual(['runtime-runsc']);
  const allow = { modes: [], networks: ['full'], runtimes: ['runsc'] };
  expect(offeredWants('docker', allow)).toContainEqual(['network-full', 'runtime-runsc']);
  expect(offeredWants('bubblewrap', allow)).toEqual([[], ['network-full']]);
});

test('a host serves every combination of what it allows, under the policies that have a sandbox', () => {
  const allow = { modes: ['read-only', 'external'], networks: ['limited', 'full', 'limited'], runtimes: [] };
  expect(offeredWants('docker', allow)).toEqual([
    [],
    ['network-limited'],
    ['network-full'],
    ['mode-external'],
    ['mode-external', 'network-limited'],
    ['mode-external', 'network-full'],
  ]);
  expect(offeredWants('host', allow)).toEqual([[]]);
});

test('sessions that want more wait in a queue of their own, which only hosts that allow it read', () => {
  const spec = sessionSpecSchema.parse({ sandbox: { network: 'full' } });
  const name = placementClass(toPlacement(spec, '2.key'));
  expect(name).toBe('docker+network-full~2.key');
  expect(parseClass(name)).toEqual({ policy: 'docker', wants: ['network-full'], schema: 2, keyId: 'key' });
  const host = (networks: string[]) => ({
    policies: ['docker'],
    sealKeys: ['key'],
    schema: 2,
    allow: { modes: [], networks, runtimes: [] },
  });
  expect(offeredClasses(host(['restricted']))).toEqual(['docker~1.key', 'docker~2.key']);
  expect(offeredClasses(host(['restricted', 'full']))).toContain(name);
});
