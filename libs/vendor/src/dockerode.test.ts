import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

const run = promisify(execFile);

// A process of its own, because other files of this one load dockerode whole.
const PROGRAM = `
import { createRequire } from 'node:module';
import { loadDockerode } from ${JSON.stringify(new URL('./dockerode.ts', import.meta.url).href)};
const require = createRequire(${JSON.stringify(import.meta.url)});
loadDockerode();
const loaded = (name) => Object.keys(require.cache).some((path) => path.includes('/node_modules/' + name + '/'));
const before = ['dockerode', 'ssh2', '@grpc/grpc-js', 'protobufjs'].map(loaded);
const modem = createRequire(require.resolve('dockerode')).resolve('docker-modem');
const agent = createRequire(modem)('./ssh')({});
console.log(JSON.stringify([before, agent instanceof require('node:http').Agent, loaded('ssh2')]));
`;

describe('dockerode', () => {
  test('loads without SSH and gRPC, and loads SSH with its first agent', async () => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', PROGRAM]);
    expect(JSON.parse(stdout)).toEqual([[true, false, false, false], true, true]);
  });
});
