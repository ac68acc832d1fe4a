import { Agent } from 'node:http';
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { loadDockerode } from './dockerode.ts';

const require = createRequire(import.meta.url);

test('dockerode is loaded without SSH and gRPC, and an agent for SSH loads its client', () => {
  loadDockerode();
  const loaded = (name: string) => Object.keys(require.cache).some((path) => path.includes(`/node_modules/${name}/`));
  expect(['dockerode', 'ssh2', '@grpc/grpc-js', 'protobufjs'].map(loaded)).toEqual([true, false, false, false]);
  const modem = createRequire(require.resolve('dockerode')).resolve('docker-modem');
  const createAgent = createRequire(modem)('./ssh');
  expect([createAgent({}), loaded('ssh2')]).toEqual([expect.any(Agent), true]);
});
