import { describe, expect, test } from 'vitest';
import { ensureDocker, lastEngineError } from './ensure-docker.ts';

describe('ensureDocker', () => {
  test('reports why an engine gave up, without its other output', () => {
    const log = [
      'level=info msg="Starting up"',
      'failed to start daemon: error initializing graphdriver: prerequisites not met',
      'level=info msg="stopping containerd"',
    ];
    expect(lastEngineError(log.join('\n'))).toBe(log[1]);
    expect(lastEngineError('')).toBe('it left no log');
  });

  test('reports that the engine of DOCKER_HOST does not answer, and replaces none', async () => {
    const env = { DOCKER_HOST: 'unix:///nowhere/docker.sock' };
    await expect(ensureDocker(env, () => {})).rejects.toThrow(
      'DOCKER_HOST is unix:///nowhere/docker.sock, and no Docker engine answers there.\n  Fix: start that engine, or unset DOCKER_HOST',
    );
  });
});
