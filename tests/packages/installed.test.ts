import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type InstalledProject, installPackages, runInProject, withNode } from '../support/installed-packages.ts';

/** The oldest version that `engines` of the packages allows, and the one that development uses. */
const versions = ['22.9.0', '24'] as const;
const cli = 'node_modules/shellfleet/dist/main.js';

const run = promisify(execFile);
const tarballs = join(checkoutRoot, '.cache/release/tarballs');
let directory: string;
let release: string;
const projects = new Map<string, InstalledProject>();
const project = (version: string) => projects.get(version) as InstalledProject;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-installed-'));
  const args = ['--no-warnings', join(checkoutRoot, 'scripts/release.ts'), '--dry-run'];
  release = (await run(process.execPath, args, { cwd: checkoutRoot })).stdout;
  const first = await installPackages(tarballs, versions[0], join(directory, 'project'));
  projects.set(versions[0], first);
  for (const version of versions.slice(1)) projects.set(version, await withNode(first, version));
}, 300_000);
afterAll(() => rm(directory, { recursive: true, force: true }));

describe('the packages', () => {
  test('are all publishable according to a dry run, each after its dependencies', () => {
    const fit = release.split('\n').filter((line) => line.endsWith('could be published'));
    expect(fit.map((line) => line.replace(/@[\d.]+ .*/, ''))).toEqual([
      '@shellfleet/protocol',
      '@shellfleet/concurrency',
      '@shellfleet/vendor',
      '@shellfleet/policy',
      '@shellfleet/redis',
      '@shellfleet/sealing',
      '@shellfleet/mailbox',
      '@shellfleet/placement',
      '@shellfleet/keeper',
      '@shellfleet/client',
      '@shellfleet/access',
      '@shellfleet/langchain',
      '@shellfleet/worker',
      '@shellfleet/api',
      '@shellfleet/mcp',
      '@shellfleet/setup',
      'shellfleet',
    ]);
  });

  test('hold programs, types, the files these read, a README and the licence only', async () => {
    const others = await Promise.all(
      (await readdir(tarballs)).sort().map(async (tarball) => {
        const { stdout } = await run('tar', ['tzf', join(tarballs, tarball)]);
        const files = stdout
          .trim()
          .split('\n')
          .map((path) => path.replace('package/', ''));
        const own = files
          .filter((path) => !/^docs\/(reference\/)?[\w-]+\.md$/.test(path) || path === 'docs/operations.md')
          .filter((path) => !/^dist\/.*(?<!\.(test|bench))\.(js|d\.ts)$/.test(path));
        // The keeper of the other architecture is built only if this machine has a compiler for it.
        const elsewhere = new RegExp(`^(dist/.*[.]lua|prebuilt/linux-(?!${process.arch}/).*)$`);
        return [tarball.replace(/-\d.*/, ''), own.filter((path) => !elsewhere.test(path)).sort()];
      }),
    );
    const always = ['LICENSE', 'README.md', 'package.json'];
    const programs = ['keeper', 'launch'].map((name) => `prebuilt/linux-${process.arch}/${name}`);
    const images = ['full.Dockerfile', 'full.txt', 'slim.txt'].map((name) => `dist/infra/images/session/${name}`);
    expect(Object.fromEntries(others)).toEqual({
      shellfleet: [
        ...[...always, 'THIRD-PARTY-NOTICES.txt', 'docs/operations.md'],
        'docs/reference/fleet-configuration.schema.json',
        'systemd/shellfleet-api.service',
        'systemd/shellfleet-worker.service',
      ].sort(),
      'shellfleet-access': always,
      'shellfleet-api': always,
      'shellfleet-placement': always,
      'shellfleet-client': always,
      'shellfleet-concurrency': always,
      'shellfleet-langchain': always,
      'shellfleet-keeper': [...always, ...programs].sort(),
      'shellfleet-mailbox': always,
      'shellfleet-mcp': always,
      'shellfleet-policy': always,
      'shellfleet-protocol': always,
      'shellfleet-redis': always,
      'shellfleet-sealing': always,
      'shellfleet-setup': [...always, ...images].sort(),
      'shellfleet-vendor': [...always, 'THIRD-PARTY-NOTICES.txt'].sort(),
      'shellfleet-worker': always,
    });
  });

  test('install no package with an install script, and none for SSH, gRPC or native decoding', async () => {
    const { directory } = project(versions[0]);
    const lock: { packages: Record<string, { hasInstallScript?: boolean }> } = JSON.parse(
      await readFile(join(directory, 'package-lock.json'), 'utf8'),
    );
    const paths = Object.keys(lock.packages).filter((path) => path !== '');
    // The lock file names optional packages too, also those of other platforms.
    const byLock = paths.filter((path) => lock.packages[path]?.hasInstallScript);
    const byFiles = await Promise.all(
      paths.map(async (path) => ((await hasInstallScript(join(directory, path))) ? path : '')),
    );
    const unwanted = /\/(?:ssh2|cpu-features|@grpc\/.*|protobufjs|msgpackr-extract|docker-modem|dockerode|bullmq)$/;
    const byName = paths.filter((path) => unwanted.test(path));
    expect({ byLock, byFiles: byFiles.filter(Boolean), byName }).toEqual({ byLock: [], byFiles: [], byName: [] });
    expect(paths).toEqual(expect.arrayContaining(['node_modules/@shellfleet/vendor', 'node_modules/ioredis']));
  });
});

/**
 * Returns whether npm would run code when it installs the package: one of three scripts, or node-gyp for a binding.gyp.
 */
async function hasInstallScript(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch((): string[] => []);
  if (names.length === 0) return false;
  const { scripts = {} } = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'));
  return names.includes('binding.gyp') || ['preinstall', 'install', 'postinstall'].some((script) => script in scripts);
}

describe.each(versions)('plain Node %s', (nodeVersion) => {
  test('runs an installed worker that serves an installed program, command line and tool', async () => {
    const { directory, node, env } = project(nodeVersion);
    const settings = {
      DOCKER_HOST: inject('dockerHost'),
      SHELLFLEET_REDIS_URL: inject('redisUrl'),
      SHELLFLEET_NAMESPACE: `t-${randomBytes(5).toString('hex')}`,
      SHELLFLEET_SEAL_KEY: randomBytes(32).toString('base64'),
      SHELLFLEET_STATE_DIR: join(directory, `state-${nodeVersion}`),
      SHELLFLEET_DEFAULT_IMAGE: inject('sessionImage'),
      SHELLFLEET_TOOLS: join(directory, 'tool.mjs'),
    };
    const worker = spawn(node, [cli, 'worker', '--slots', '2', '--host-id', `node-${nodeVersion}`], {
      cwd: directory,
      env: { ...env, ...settings },
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const ended = once(worker, 'exit');
    try {
      const seen = await runInProject(project(nodeVersion), ['program.mjs'], { env: settings });
      const said = await runInProject(project(nodeVersion), [cli, 'exec', 'shell', '--', 'echo "$((6 * 7))"'], {
        env: settings,
      });
      const version = await runInProject(project(nodeVersion), ['--version']);
      const compiled = await readdir(join(directory, 'cache/shellfleet/compile')).catch(() => []);
      expect({
        seen: JSON.parse(seen),
        said,
        isPlain: version.startsWith(`v${nodeVersion}`),
        isCached: compiled.some((name) => name.startsWith(version.trim())),
      }).toEqual({
        seen: {
          outcome: 'success',
          exitCode: 0,
          stdout: 'hello from /tmp\n',
          file: 'written',
          streamed: 'streamed\n',
          tool: { twice: 42 },
        },
        said: '42\n',
        isPlain: true,
        isCached: true,
      });
    } finally {
      // The signal goes to the whole group, like Ctrl-C at a terminal; the sessions end with the worker.
      process.kill(-(worker.pid ?? 0), 'SIGINT');
      await ended;
    }
  });
});

describe('the installed command line', () => {
  // A schema made while the program loads costs each call time, also a call that never uses it.
  test('makes no schema while it loads', async () => {
    const settings = `{ get jitless() { throw new Error('A schema is made.'); } }`; // zod reads it for each object
    const script = `globalThis.__zod_globalConfig = ${settings};
      await import('./node_modules/shellfleet/dist/start.js');
      console.log('loaded');`;
    expect(await runInProject(project('24'), ['--input-type=module', '-e', script])).toBe('loaded\n');
  });
});

describe('the installed packages', () => {
  test.each(versions)('bring a fleet up with plain Node %s, use it and end it', async (nodeVersion) => {
    const env = {
      SHELLFLEET_STATE_DIR: await mkdtemp(join(tmpdir(), 'sf-')),
      SHELLFLEET_DEFAULT_IMAGE: inject('sessionImage'),
    };
    const shellfleet = (...args: string[]) => runInProject(project(nodeVersion), [cli, ...args], { env });
    try {
      await shellfleet('up', '--detach', '--slots', '2');
      expect(await shellfleet('exec', 'demo', '--', 'echo "$((6 * 7))"')).toBe('42\n');
      const { api } = JSON.parse(await readFile(join(env.SHELLFLEET_STATE_DIR, 'fleet.json'), 'utf8'));
      const reply = await fetch(`${api.url}/v1/me`, { headers: { authorization: `Bearer ${api.key}` } });
      expect(await reply.json()).toMatchObject({ name: 'local', tenant: 'default' });
    } finally {
      await shellfleet('down');
      await rm(env.SHELLFLEET_STATE_DIR, { recursive: true, force: true });
    }
  });

  test.each([
    { moduleResolution: 'nodenext', module: 'nodenext' },
    { moduleResolution: 'bundler', module: 'esnext' },
  ])('have types that hold for a strict project with moduleResolution $moduleResolution', async (resolution) => {
    const { directory, env } = project('24');
    const strict = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
    };
    const compilerOptions = {
      ...resolution,
      ...strict,
      target: 'es2023',
      lib: ['es2023'],
      types: ['node'],
      noEmit: true,
    };
    const path = join(directory, `tsconfig.${resolution.moduleResolution}.json`);
    await writeFile(path, JSON.stringify({ compilerOptions, files: ['consumer.ts'] }));
    const compiler = join(checkoutRoot, 'node_modules/typescript/bin/tsc');
    const said = await runInProject({ directory, env, node: process.execPath }, [compiler, '-p', path]).catch(
      ({ stdout }: { stdout: string }) => stdout,
    );
    expect(said).toBe('');
  });
});
