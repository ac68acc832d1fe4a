import { expect, test } from 'vitest';
import { ensureDocker, lastEngineError } from './ensure-docker.ts';

test('says why an engine gave up, and not what it said on the way', () => {
  const log = [
    'level=info msg="Starting up"',
    'failed to start daemon: error initializing graphdriver: prerequisites not met',
    'level=info msg="stopping containerd"',
  ];
  expect(lastEngineError(log.join('\n'))).toBe(log[1]);
  expect(lastEngineError('')).toBe('it left no log');
});

test('never replaces the engine that DOCKER_HOST names, but says that it does not answer', async () => {
  const env = { DOCKER_HOST: 'unix:///nowhere/docker.sock' };
  await expect(ensureDocker(env, () => {})).rejects.toThrow(
    'DOCKER_HOST is unix:///nowhere/docker.sock, and no Docker engine answers there.\n  Fix: start that engine, or unset DOCKER_HOST',
  );
});
