import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../steps.ts';
import { bundleVendor } from './bundle-vendor.ts';
import { readManifest } from './third-party.ts';

let directory: string;
let left: Record<string, string>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-vendor-'));
  left = await bundleVendor(await readManifest(join(root, 'libs/vendor')), '', directory);
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }');
});

afterAll(() => rm(directory, { recursive: true, force: true }));

/** Returns the JSON output of a program that imports the bundles in a directory without any package. */
async function printed(program: string): Promise<unknown> {
  const imports = "import * as bullmq from './dist/bullmq.js';\nimport { loadDockerode } from './dist/dockerode.js';\n";
  await writeFile(join(directory, 'program.js'), `${imports}const Docker = loadDockerode();\n${program}`);
  return JSON.parse((await promisify(execFile)(process.execPath, [join(directory, 'program.js')])).stdout);
}

describe('the bundles of BullMQ, dockerode and OpenTelemetry', () => {
  test('have the exports of the checkout, and need only the API of OpenTelemetry', async () => {
    const exported = await printed(`console.log(JSON.stringify([Object.keys(bullmq), typeof Docker.prototype.ping]));`);
    const inCheckout = await import('@shellfleet/vendor/bullmq');
    const api = { '@opentelemetry/api': expect.stringMatching(/^\^1\./) };
    expect([exported, left]).toEqual([[Object.keys(inCheckout).sort(), 'function'], api]);
  });

  test('export a span, with no package but the API', async () => {
    const program = `
import { createServer } from 'node:http';
import { trace } from '@opentelemetry/api';
import { startTracing } from './dist/opentelemetry.js';
const server = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  response.end();
  console.log(JSON.stringify([request.url, request.headers['content-type'], body.includes('a span')]));
});
server.listen(0, '127.0.0.1', async () => {
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = 'http://127.0.0.1:' + server.address().port;
  const tracing = startTracing({ encoding: 'protobuf', resource: {}, onError: (error) => console.error(error) });
  trace.getTracer('t').startSpan('a span').end();
  await tracing.end(5_000);
  server.closeAllConnections();
  server.close();
});`;
    await mkdir(join(directory, 'node_modules/@opentelemetry'), { recursive: true });
    const api = 'node_modules/@opentelemetry/api';
    await symlink(join(root, api), join(directory, api));
    expect(await printed(program)).toEqual(['/v1/traces', 'application/x-protobuf', true]);
  });

  test('fail with the name of a missing part only when that is used', async () => {
    const program = `
const attempt = (call) => call().then(() => 'nothing', (error) => error.message);
console.log(JSON.stringify([
  await attempt(() => new Docker({ socketPath: '/nowhere.sock' }).ping()),
  await attempt(async () => new Docker({ protocol: 'ssh', host: 'engine.example' }).ping()),
  await attempt(async () => new Docker({ socketPath: '/nowhere.sock' }).followProgress()),
]));`;
    expect(await printed(program)).toEqual([
      'connect ENOENT /nowhere.sock',
      'Shellfleet is published without ./ssh.',
      'Shellfleet is published without ./buildkit.',
    ]);
  });

  test('have a licence for each package, none of which has an install script', async () => {
    const notices = await readFile(join(directory, 'THIRD-PARTY-NOTICES.txt'), 'utf8');
    const names = [...notices.matchAll(/^={80}\n(\S+) \S+ \(/gm)].map(([, name]) => name);
    expect(names).toEqual(
      expect.arrayContaining(['bullmq', 'docker-modem', 'dockerode', 'luxon', 'msgpackr', 'tar-fs']),
    );
    expect(names.filter((name) => /ssh2|grpc|protobuf|cpu-features|extract|ioredis/.test(name ?? ''))).toEqual([]);
    expect((await readdir(join(directory, 'dist'))).filter((name) => !name.endsWith('.js'))).toEqual([]);
  });
});
