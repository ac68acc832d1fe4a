import { Agent } from 'node:http';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { loadDockerode } from './dockerode.ts';

const require = createRequire(import.meta.url);

describe('dockerode', () => {
  test('loads without SSH and gRPC, and loads SSH with its first agent', () => {
    loadDockerode();
    const loaded = (name: string) => Object.keys(require.cache).some((path) => path.includes(`/node_modules/${name}/`));
    expect(['dockerode', 'ssh2', '@grpc/grpc-js', 'protobufjs'].map(loaded)).toEqual([true, false, false, false]);
    const modem = createRequire(require.resolve('dockerode')).resolve('docker-modem');
    const createAgent = createRequire(modem)('./ssh');
    expect([createAgent({}), loaded('ssh2')]).toEqual([expect.any(Agent), true]);
  });
});
