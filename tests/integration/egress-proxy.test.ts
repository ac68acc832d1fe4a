import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { proxyVariables } from '@shellfleet/policy';
import { createSealKey, egressKeyOf, signEgress } from '@shellfleet/sealing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

// The program of the egress proxy with the configuration file of a worker, and programs that find it by their
// variables, as they do in a Pod.

const main = fileURLToPath(new URL('../../apps/worker/src/egress/main.ts', import.meta.url));
const preload = new URL('../fixtures/resolves-names.ts', import.meta.url).href;
const sealKey = createSealKey();
const lines: Record<string, unknown>[] = [];

let directory: string;
let site: Server;
let sitePort: number;
let proxy: ChildProcess;
let proxyPort: number;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-proxy-'));
  site = createServer((_incoming, answer) => answer.end('the site\n'));
  await once(site.listen(0, '127.0.0.1'), 'listening');
  sitePort = (site.address() as AddressInfo).port;
  proxyPort = await freePort();
  const settings = {
    // The proxy has no such file, and does not need it.
    approvals: { webhook: { url: 'https://hooks.example', secretFile: '/nowhere' } },
    allow: { networks: ['limited'], hosts: ['*.test', `*.test:${sitePort}`], privateAddresses: ['127.0.0.1/32'] },
    kubernetes: { namespace: 'n', keeper: { image: 'k' }, egress: { host: 'egress', port: proxyPort } },
  };
  await writeFile(join(directory, 'config.yaml'), JSON.stringify(settings));
  proxy = start({
    SHELLFLEET_CONFIG: join(directory, 'config.yaml'),
    SHELLFLEET_SEAL_KEY: `${createSealKey()},${sealKey}`,
  });
  for await (const line of createInterface(proxy.stdout!)) {
    lines.push(JSON.parse(line));
    if (line.includes('egress.listening')) break;
  }
  createInterface(proxy.stdout!).on('line', (line) => lines.push(JSON.parse(line)));
}, 30_000);

afterAll(async () => {
  proxy?.kill('SIGKILL');
  site?.close();
  await rm(directory, { recursive: true, force: true });
});

function start(env: Record<string, string>): ChildProcess {
  const names = {
    'site.test': [['127.0.0.1']],
    'inside.test': [['127.0.0.2']],
    'metadata.test': [['169.254.169.254']],
  };
  return spawn(process.execPath, ['--conditions=@shellfleet/source', '--no-warnings', '--import', preload, main], {
    env: { ...env, SHELLFLEET_TEST_NAMES: JSON.stringify(names) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function variables(signedWith = sealKey): Record<string, string> {
  const hosts = [`site.test:${sitePort}`, 'inside.test', 'metadata.test'];
  const statement = { namespace: 'n', tenant: 't', session: 's', hosts, expiresAt: Date.now() + 60_000 };
  const token = signEgress(egressKeyOf(signedWith), statement);
  return proxyVariables(`http://session:${token}@127.0.0.1:${proxyPort}`);
}

/** Runs a program with nothing but the variables of a Pod, and returns what it prints. */
async function run(program: string, args: string[], env = variables()): Promise<string> {
  const options = { env: { PATH: process.env.PATH, ...env } };
  const { stdout, stderr } = await promisify(execFile)(program, args, options).catch((error) => error);
  return stdout + stderr;
}
const curl = (url: string, env?: Record<string, string>) => run('curl', ['-sS', '--max-time', '5', url], env);

describe('the program of the egress proxy', () => {
  test('lets curl and Node reach an allowed host by their variables alone', async () => {
    const url = `http://site.test:${sitePort}/`;
    expect(await curl(url)).toBe('the site\n');
    const script = `fetch(${JSON.stringify(url)}).then((answer) => answer.text()).then((text) => process.stdout.write(text))`;
    expect(await run(process.execPath, ['-e', script])).toBe('the site\n');
    await expect
      .poll(() => lines)
      .toContainEqual(
        expect.objectContaining({
          ...{ 'shellfleet.tenant.id': 't', 'shellfleet.session.id': 's' },
          ...{ 'server.address': 'site.test', 'server.port': sitePort, msg: 'egress.let-through' },
        }),
      );
  });

  test('refuses private addresses, hosts beside the list, and foreign tokens', async () => {
    expect(await curl('http://inside.test/')).toContain('it is at a private address');
    expect(await curl('http://metadata.test/')).toContain('it is at a private address');
    expect(await curl('https://other.test/')).toContain('403');
    expect(await curl(`http://site.test:${sitePort}/`, variables(createSealKey()))).toContain('no valid token');
    expect(lines.filter(({ msg }) => msg === 'egress.refused').map((line) => line['server.address'])).toEqual([
      ...['inside.test', 'metadata.test', 'other.test'],
    ]);
  });

  test('says what is missing, and ends', async () => {
    const broken = start({ SHELLFLEET_CONFIG: '/nowhere.yaml', SHELLFLEET_SEAL_KEY: sealKey });
    const errors: Buffer[] = [];
    broken.stderr!.on('data', (chunk: Buffer) => errors.push(chunk));
    expect(await once(broken, 'close')).toEqual([2, null]);
    expect(Buffer.concat(errors).toString()).toMatch(/^shellfleet: SHELLFLEET_CONFIG: \/nowhere.yaml cannot be read/);
  });

  test('ends after a SIGTERM', async () => {
    proxy.kill('SIGTERM');
    expect(await once(proxy, 'exit')).toEqual([0, null]);
  });
});
