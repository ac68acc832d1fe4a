import { execFile } from 'node:child_process';
import { access, chmod, constants, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { keeperPath } from '@shellfleet/keeper';
import { checkoutRoot, ensureKeeperImage, ensureRedisImage, ensureWorkerImage, findDocker } from '@shellfleet/setup';
import { Redis } from 'ioredis';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { pushKeeper } from '../../scripts/images/push-keeper.ts';
import { resolveBases } from '../../scripts/images/resolve-bases.ts';
import { type ImageRegistry, PASSWORD, startImageRegistry, USER } from '../support/image-registry.ts';

const run = promisify(execFile);
/** What the chart gives every container: no rights, and a root that it cannot write. */
const RESTRICTED = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges'];

async function docker(args: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const result = await run('docker', args).then(
    (said) => ({ code: 0, ...said }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
  return { exitCode: result.code, stdout: result.stdout.trim(), stderr: result.stderr.trim() };
}

async function deps() {
  const engine = await findDocker({ DOCKER_HOST: inject('dockerHost') });
  return { endpoint: engine!.endpoint, env: process.env, root: checkoutRoot, report: () => {} };
}

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sf-images-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

describe('images for clusters', () => {
  test.for([
    ['x64', 'amd64'],
    ['arm64', 'arm64'],
  ] as const)('hold the keeper alone, of %s, and not for root', async ([arch, ofImage]) => {
    const image = await ensureKeeperImage(await deps(), await keeperPath(), arch);
    const format = '{{.Architecture}} {{.Config.User}} {{.Config.Entrypoint}} {{len .RootFS.Layers}}';
    expect((await docker(['image', 'inspect', '--format', format, image])).stdout).toBe(
      `${ofImage} 1000:1000 [/keeper] 1`,
    );
  });

  test('install the keeper into a volume, as its own user without any right', async () => {
    const image = await ensureKeeperImage(await deps(), await keeperPath(), process.arch === 'arm64' ? 'arm64' : 'x64');
    const volume = await temporaryDirectory();
    await chmod(volume, 0o777);
    const install = [`--volume=${volume}:/sf`, image, '--install', '/sf/keeper'];
    const silent = { exitCode: 0, stdout: '', stderr: '' };
    expect(await docker(['run', '--rm', '--network=none', ...RESTRICTED, ...install])).toEqual(silent);
    expect(await readFile(join(volume, 'keeper'))).toEqual(await readFile(await keeperPath()));
    await access(join(volume, 'keeper'), constants.X_OK);
  });

  test('start a worker that refuses missing settings, as its own user without any right', async () => {
    const image = await ensureWorkerImage(await deps(), inject('sessionImage'));
    const own = [
      '--tmpfs=/tmp',
      '--tmpfs=/var/lib/shellfleet:uid=1000',
      '--env=SHELLFLEET_STATE_DIR=/var/lib/shellfleet',
    ];
    expect(
      await docker([
        'run',
        '--rm',
        '--network=none',
        ...RESTRICTED,
        ...own,
        '--env=SHELLFLEET_POLICIES=kubernetes',
        image,
      ]),
    ).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: 'shellfleet: SHELLFLEET_CONFIG: the policy kubernetes needs the section kubernetes',
    });
    expect((await docker(['image', 'inspect', '--format', '{{.Config.User}}', image])).stdout).toBe('1000:1000');
  }, 120_000);

  test('start a Redis with the settings of the chart, and its password', async () => {
    const image = await ensureRedisImage(await deps());
    const template = await readFile(join(checkoutRoot, 'infra/helm/shellfleet/templates/redis.yaml'), 'utf8');
    const [, block = ''] = /redis\.conf: \|\n((?: {4}.*\n)+)/.exec(template) ?? [];
    const settings = block.replaceAll(/^ {4}/gm, '').replace('{{ $redis.maxMemory }}', '64mb');
    const directory = await temporaryDirectory();
    await chmod(directory, 0o755);
    await writeFile(join(directory, 'redis.conf'), settings);
    await writeFile(join(directory, 'users.acl'), 'user default on >secret ~* &* +@all\n');
    const name = `sf-test-redis-${process.pid}`;
    const mounts = ['/etc/redis', '/etc/redis-users'].map((path) => `--volume=${directory}:${path}:ro`);
    const started = await docker([
      ...['run', '--detach', '--name', name, ...RESTRICTED, '--publish=127.0.0.1::6379'],
      ...[...mounts, '--tmpfs=/data:uid=999', image, 'redis-server', '/etc/redis/redis.conf'],
    ]);
    onTestFinished(async () => void (await docker(['rm', '--force', name])));
    expect(started).toMatchObject({ exitCode: 0, stderr: '' });
    const address = (await docker(['port', name, '6379'])).stdout;
    await using redis = await connectTo(`redis://default:secret@${address}`);
    expect(await redis.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
    expect(await redis.config('GET', 'appendonly')).toEqual(['appendonly', 'yes']);
    await using stranger = await connectTo(`redis://${address}`);
    await expect(stranger.ping()).rejects.toThrow('NOAUTH');
  });

  test('are written as archives and pushed, and named in values of the chart', async () => {
    await using registry = await startImageRegistry();
    const directory = await logIn(registry);
    const prefix = `${registry.address}/fleet`;
    const args = ['--only', 'keeper,redis', '--out', directory, '--registry', `${prefix}/`, '--tag', '7'];
    const flags = ['--conditions=@shellfleet/source', '--no-warnings', 'scripts/images.ts'];
    const env = { ...process.env, DOCKER_HOST: inject('dockerHost') };
    const { stdout } = await run(process.execPath, [...flags, ...args], { cwd: checkoutRoot, env });
    onTestFinished(async () => void (await docker(['rmi', `${prefix}/keeper:7`, `${prefix}/redis:7`])));

    expect(stdout).toBe(
      [
        `# Images for ${process.arch === 'x64' ? 'amd64' : process.arch}.`,
        'sessions:',
        `  keeper: { repository: '${prefix}/keeper', tag: '7' }`,
        '  pullPolicy: IfNotPresent',
        `redis: { embedded: { image: '${prefix}/redis:7', pullPolicy: IfNotPresent } }`,
        '',
      ].join('\n'),
    );
    expect(await readFile(join(directory, 'values.yaml'), 'utf8')).toBe(stdout);
    const { stdout: manifest } = await run('tar', ['-xOf', join(directory, 'keeper.tar'), 'manifest.json']);
    expect(JSON.parse(manifest)[0].RepoTags).toEqual([`${prefix}/keeper:7`]);
    await access(join(directory, 'redis.tar'));
    expect(await docker(['manifest', 'inspect', '--insecure', `${prefix}/redis:7`])).toMatchObject({ exitCode: 0 });
  }, 60_000);

  test('of a release rest on digests, and on nothing that has none', async () => {
    await using registry = await startImageRegistry();
    await logIn(registry);
    const [image = ''] = await registry.add(1);
    const repository = image.replace(/:1$/, '');
    expect(await resolveBases({ worker: image })).toEqual({
      worker: expect.stringMatching(new RegExp(`^${repository}@sha256:[0-9a-f]{64}$`)),
    });
    await expect(resolveBases({ worker: `${repository}:2`, session: `${repository}:3` })).rejects.toThrow(
      /:2 has no digest here, so nobody could make the same worker image: .*\n.*:3 has no digest/,
    );
  });

  test('of a release have the keepers of both architectures under one name', async () => {
    await using registry = await startImageRegistry();
    await logIn(registry);
    const { endpoint, report } = await deps();
    const keeper = await keeperPath();
    const image = `${registry.address}/keeper:9`;
    const machine = { engine: { endpoint, version: '', startedHere: false } };
    await pushKeeper({ machine, report, programs: { x64: keeper, arm64: keeper }, image });
    onTestFinished(async () => void (await docker(['rmi', `${image}-amd64`, `${image}-arm64`])));
    const list = JSON.parse((await docker(['manifest', 'inspect', '--insecure', image])).stdout);
    expect(list.manifests.map(({ platform }: { platform: { architecture: string } }) => platform.architecture)).toEqual(
      ['amd64', 'arm64'],
    );
  });
});

/** Lets the docker program of this process use the registry until the end of the test. Returns its directory. */
async function logIn({ address }: ImageRegistry): Promise<string> {
  const directory = await temporaryDirectory();
  const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
  await writeFile(join(directory, 'config.json'), JSON.stringify({ auths: { [address]: { auth } } }));
  const { DOCKER_CONFIG: before } = process.env;
  process.env.DOCKER_CONFIG = directory;
  onTestFinished(() => {
    if (before === undefined) delete process.env.DOCKER_CONFIG;
    else process.env.DOCKER_CONFIG = before;
  });
  return directory;
}

/** Connects when the server answers. */
async function connectTo(url: string): Promise<Redis & AsyncDisposable> {
  const redis = new Redis(url, { enableReadyCheck: false, retryStrategy: () => 100, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  return Object.assign(redis, { [Symbol.asyncDispose]: async () => redis.disconnect() });
}
