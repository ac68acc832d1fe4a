// File operations next to commands, whole directories and `cp`, through the SDK and the command line on one fleet.

import { execFile } from 'node:child_process';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Session } from '@shellfleet/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { mostResidentBytes } from '../support/resident-bytes.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);

let stack: TestFleet;
let cli: FleetCli;
let session: Session;
let local: string;
beforeAll(async () => {
  stack = await startFleet();
  cli = new FleetCli(stack);
  session = await stack.fleet.session('beside');
});
afterAll(() => stack?.[Symbol.asyncDispose]());
beforeEach(async () => {
  local = await mkdtemp(join(tmpdir(), 'sf-beside-'));
  return () => rm(local, { recursive: true, force: true });
});

/** Submits a command that runs until the file exists. */
async function holdUntil(path: string) {
  const command = await session.submit(`until [ -e ${path} ]; do sleep 0.02; done`, { timeoutMs: 600_000 });
  await until(
    () => session.info(),
    ({ runningCommandId }) => runningCommandId === command.id,
  );
  return command;
}

describe('file operations alongside commands', () => {
  test('are done while a command runs; the next command waits for the last operation', async () => {
    const { files } = session;
    const command = await holdUntil('/workspace/go');
    await files.write('/workspace/deep/a', 'text');
    await files.chmod('/workspace/deep/a', 0o640);
    await files.mkdir('/workspace/deep/er/est');
    await files.rename('/workspace/deep/a', '/workspace/new/place/b');
    expect(await files.readText('/workspace/new/place/b')).toBe('text');
    expect(await files.stat('/workspace/new/place/b')).toEqual({
      name: 'b',
      path: '/workspace/new/place/b',
      type: 'file',
      size: 4,
      mode: 0o640,
      modifiedAt: expect.any(String),
    });
    expect((await files.list('/workspace/deep')).map(({ name, type }) => [name, type])).toEqual([['er', 'directory']]);
    await expect(files.remove('/workspace/deep', { recursive: false })).rejects.toMatchObject({
      code: 'FILE_IS_DIRECTORY',
    });
    await files.remove('/workspace/deep');
    await expect(files.stat('/workspace/deep')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect((await session.info()).runningCommandId).toBe(command.id);
    await files.write('/workspace/go', '');
    expect(await command.result()).toMatchObject({ outcome: 'success', shell: { state: 'kept' } });
  });

  test('wait for the previous command if ordered, and the next command waits for them', async () => {
    const command = await holdUntil('/workspace/ordered-go');
    const ordered = session.files.write('/workspace/order', 'second', { ordered: true });
    const after = session.run('cat order');
    await session.files.write('/workspace/order', 'first');
    expect(await session.files.readText('/workspace/order')).toBe('first');
    await session.files.write('/workspace/ordered-go', '');
    await ordered;
    expect((await after).stdout).toBe('second');
    expect((await command.result()).outcome).toBe('success');
  });

  test('go on when a command is cancelled', async () => {
    const command = await session.submit('trap "" INT TERM; sleep 4321');
    const bytes = Buffer.alloc(8 << 20, 'x');
    const write = session.files.write('/workspace/whole', bytes);
    await command.cancel();
    await write;
    expect((await session.files.stat('/workspace/whole')).size).toBe(bytes.byteLength);
  });

  test('wait for the first sandbox of a session, and are refused once it is closed', async () => {
    const fresh = await stack.fleet.session('fresh');
    await Promise.all([fresh.files.write('/workspace/a', 'a'), fresh.files.write('/workspace/b', 'b')]);
    expect((await fresh.run('cat a b')).stdout).toBe('ab');
    await fresh.restart();
    expect(await fresh.files.readText('/workspace/a')).toBe('a');
    await fresh.close();
    await expect(fresh.files.readText('/workspace/a')).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
  });

  test('are all done when there are many, though few run at a time', async () => {
    const names = Array.from({ length: 60 }, (_, index) => `/workspace/many/${index}`);
    await Promise.all(names.map((name) => session.files.write(name, name)));
    expect(await Promise.all(names.map((name) => session.files.readText(name)))).toEqual(names);
  });

  test('go on when the worker is killed and started again', async () => {
    const [worker] = stack.workers;
    await session.run('kept=yes');
    const bytes = Buffer.alloc(40 << 20, 'y');
    const write = session.files.write('/workspace/over', bytes);
    await worker?.kill();
    await worker?.start();
    await write;
    expect((await session.files.stat('/workspace/over')).size).toBe(bytes.byteLength);
    expect((await session.run('echo $kept; rm over')).stdout).toBe('yes\n');
  });
});

describe('patterns of list', () => {
  test('match names as in a shell, and match any number of directories with **', async () => {
    await session.run(`mkdir -p g/src/deep/er g/.hidden 'g/[x]' && cd g && touch a.ts b.js src/c.ts src/deep/er/d.ts .e.ts .hidden/f.ts '[x]/g.ts' &&
      ln -s /etc link; cd ..`);
    const found = async (pattern: string, options = {}) =>
      (await session.files.list(`/workspace/g/${pattern}`, options)).map(({ path }) =>
        path.slice('/workspace/g/'.length),
      );
    expect(await found('*.ts')).toEqual(['a.ts']);
    expect(await found('**/*.ts')).toEqual(['[x]/g.ts', 'a.ts', 'src/c.ts', 'src/deep/er/d.ts']);
    expect(await found('src/**')).toEqual(['src/deep', 'src/deep/er', 'src/deep/er/d.ts', 'src/c.ts'].sort());
    expect(await found('.*.ts')).toEqual(['.e.ts']);
    expect(await found('?.[jt]s')).toEqual(['a.ts', 'b.js']);
    expect(await found('*/hostname')).toEqual([]);
    expect(await found('link/hostname*')).toEqual(['link/hostname']);
    expect(await found('none/*').catch(({ code }) => code)).toBe('FILE_NOT_FOUND');
    expect(await found('[x]', { glob: false })).toEqual(['[x]/g.ts']);
  });

  test('list a directory of 10,000 files completely', async () => {
    await session.run('mkdir big && cd big && seq -f "%06g-a-name-of-some-length" 10000 | xargs touch; cd ..');
    const entries = await session.files.list('/workspace/big');
    expect([entries.length, new Set(entries.map(({ name }) => name)).size]).toEqual([10_000, 10_000]);
    await session.run('rm -r big');
  });
});

/** Default size of the tree. SHELLFLEET_TEST_TREE_FILES=100000 SHELLFLEET_TEST_TREE_BYTES=1000000000 make it larger. */
const FILES = Number(process.env.SHELLFLEET_TEST_TREE_FILES ?? 3_000);
const TREE_BYTES = Number(process.env.SHELLFLEET_TEST_TREE_BYTES ?? 32_000_000);
const TREE_TIMEOUT_MS = 1_800_000;
const FILES_IN_A_DIRECTORY = 500;

/** Writes half of the bytes to one file, and the rest to small ones. */
async function makeTree(root: string, files: number, bytes: number): Promise<void> {
  const small = Buffer.alloc(Math.floor(bytes / 2 / files), 'small ');
  for (let at = 0; at < files; at += FILES_IN_A_DIRECTORY) {
    const directory = join(root, `${at}`);
    await mkdir(directory, { recursive: true });
    const names = Array.from({ length: Math.min(FILES_IN_A_DIRECTORY, files - at) }, (_, index) => `file-${index}`);
    await Promise.all(names.map((name) => writeFile(join(directory, name), small)));
  }
  await writeFile(join(root, 'large'), Buffer.alloc(bytes / 2, 'large '));
}

/** Describes all properties of a local tree that a copy keeps. */
async function describeTree(root: string): Promise<Record<string, string>> {
  const entries: Record<string, string> = {};
  for (const name of (await readdir(root, { recursive: true })).sort()) {
    const path = join(root, name);
    const found = await lstat(path);
    const mode = (found.mode & 0o777).toString(8);
    if (found.isSymbolicLink()) entries[name] = `link ${await readlink(path)}`;
    else if (found.isDirectory()) entries[name] = `directory ${mode}`;
    else entries[name] = `file ${mode} ${(await readFile(path)).toString('base64')}`;
  }
  return entries;
}

describe('a directory', () => {
  test('keeps modes, links, empty directories and strange names on its way up and down', async () => {
    const tree = join(local, 'tree');
    await mkdir(join(tree, 'sub', 'empty'), { recursive: true });
    await mkdir(join(tree, 'closed'));
    await writeFile(join(tree, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 });
    await writeFile(join(tree, 'secret'), 'x', { mode: 0o600 });
    await writeFile(join(tree, 'new\nline -rf é'), '');
    await writeFile(join(tree, 'sub', 'large'), Buffer.alloc(3_000_001, 'abc'));
    await writeFile(join(tree, 'closed', 'f'), 'f');
    await symlink('../run.sh', join(tree, 'sub', 'link'));
    await symlink('/nowhere/at/all', join(tree, 'dangling'));
    await chmod(join(tree, 'closed'), 0o555);
    await session.files.upload(tree, '/workspace/tree');
    expect((await session.run('tree/run.sh && cat tree/closed/f && stat -c %a tree/closed tree/secret')).stdout).toBe(
      'f555\n600\n',
    );
    await session.files.download('/workspace/tree', join(local, 'back'));
    expect(await describeTree(join(local, 'back'))).toEqual(await describeTree(tree));
    await session.files.upload(tree, '/workspace/ordered-tree', { ordered: true });
    await session.files.download('/workspace/ordered-tree', join(local, 'ordered-back'), { ordered: true });
    expect(await describeTree(join(local, 'ordered-back'))).toEqual(await describeTree(tree));
  });

  // invariant 8
  test(
    'of 3,000 files moves beside a command; neither client nor worker holds it whole',
    async () => {
      const tree = join(local, 'many');
      await makeTree(tree, FILES, TREE_BYTES);
      const command = await holdUntil('/workspace/many-go');
      const worker = stack.workers[0]?.pid ?? -1;
      for (const [from, to] of [
        [tree, 'beside:/workspace/many-files'],
        ['beside:/workspace/many-files', join(local, 'back')],
      ] as const) {
        const began = Date.now();
        const copy = cli.start(['cp', '-r', '--json', from, to]);
        const [ofClient, ofWorker, { stdout }] = await Promise.all([
          mostResidentBytes(copy.child.pid ?? -1, copy.end),
          mostResidentBytes(worker, copy.end),
          copy.end,
        ]);
        const seconds = ((Date.now() - began) / 1_000).toFixed(1);
        console.info(
          `${to}: ${seconds} s, client ${ofClient >> 20} MiB, worker ${ofWorker >> 20} MiB resident at most`,
        );
        expect(JSON.parse(stdout.toString())).toMatchObject({ files: FILES + 1 });
        expect(Math.max(ofClient, ofWorker)).toBeLessThan(512 << 20);
      }
      expect((await run('diff', ['-rq', tree, join(local, 'back')])).stdout).toBe('');
      await session.files.write('/workspace/many-go', '');
      expect((await command.result()).outcome).toBe('success');
      await session.files.remove('/workspace/many-files');
    },
    TREE_TIMEOUT_MS,
  );

  test.each([
    ['a FIFO', 'mkfifo pipe', 'pipe'],
    ['a directory that may not be read', 'mkdir shut && chmod 0 shut', 'shut'],
    ['a name that is not UTF-8', "touch $'\\377'", 'name that is not UTF-8'],
  ])('is refused in the sandbox when it contains %s, which the message names', async (_what, make, named) => {
    await session.run(`rm -rf odd; mkdir odd && cd odd && ${make}; cd ..`);
    await expect(session.files.download('/workspace/odd', join(local, 'odd'))).rejects.toMatchObject({
      code: 'FILE_DENIED',
      message: expect.stringContaining(named),
    });
  });

  test('is refused on this machine when it contains a FIFO, which the message names', async () => {
    await run('mkfifo', [join(local, 'pipe')]);
    await expect(session.files.upload(local, '/workspace/odd')).rejects.toMatchObject({
      code: 'FILE_DENIED',
      message: expect.stringContaining(join(local, 'pipe')),
    });
  });
});

describe('`shellfleet cp`', () => {
  test('keeps modes, takes directories with -r only, and uses stdin or stdout for -', async () => {
    await writeFile(join(local, 'run'), '#!/bin/sh\necho ran\n', { mode: 0o755 });
    await writeFile(join(local, 'secret'), 'x', { mode: 0o600 });
    await mkdir(join(local, 'directory'));
    await writeFile(join(local, 'directory', 'f'), 'in directory');
    expect((await cli.run(['cp', join(local, 'run'), 'beside:/workspace'])).exitCode).toBe(0);
    expect((await cli.run(['cp', join(local, 'secret'), 'beside:/workspace/cp/secret'])).exitCode).toBe(0);
    expect((await session.run('./run; stat -c %a cp/secret')).stdout).toBe('ran\n600\n');
    expect((await cli.run(['cp', 'beside:/workspace/cp/secret', join(local, 'back')])).exitCode).toBe(0);
    expect((await stat(join(local, 'back'))).mode & 0o777).toBe(0o600);
    expect(await cli.text(['cp', join(local, 'directory'), 'beside:/workspace/'])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: `shellfleet: ${local}/directory is a directory. Add -r to copy it with everything in it. (COMMAND_INVALID)\n`,
    });
    const copied = await cli.text(['cp', '-r', '--json', join(local, 'directory'), 'beside:/workspace/']);
    expect(JSON.parse(copied.stdout)).toEqual({
      from: join(local, 'directory'),
      to: 'beside:/workspace/directory',
      bytes: 'in directory'.length,
      files: 1,
    });
    expect((await cli.run(['cp', '-r', 'beside:/workspace/directory', local])).exitCode).toBe(0);
    expect(await cli.text(['cp', '-', 'beside:/workspace/typed'], { stdin: 'from stdin' })).toMatchObject({
      exitCode: 0,
    });
    expect(await cli.text(['cp', 'beside:/workspace/typed', '-'])).toEqual({
      exitCode: 0,
      stdout: 'from stdin',
      stderr: '',
    });
    expect((await cli.text(['cp', 'beside:/workspace/typed', '/dev/stdout'])).stdout).toBe('from stdin');
  });

  test('writes into a FIFO and through a symbolic link, and leaves both as they are', async () => {
    await session.files.write('/workspace/source', 'content');
    await run('mkfifo', [join(local, 'pipe')]);
    const reading = readFile(join(local, 'pipe'), 'utf8');
    expect((await cli.run(['cp', 'beside:/workspace/source', join(local, 'pipe')])).exitCode).toBe(0);
    expect(await reading).toBe('content');
    expect((await lstat(join(local, 'pipe'))).isFIFO()).toBe(true);
    await writeFile(join(local, 'real'), 'old');
    await symlink('real', join(local, 'link'));
    expect((await cli.run(['cp', 'beside:/workspace/source', join(local, 'link')])).exitCode).toBe(0);
    expect([await readlink(join(local, 'link')), await readFile(join(local, 'real'), 'utf8')]).toEqual([
      'real',
      'content',
    ]);
    await symlink('nothing', join(local, 'dangling'));
    expect(await cli.text(['cp', 'beside:/workspace/source', join(local, 'dangling')])).toMatchObject({
      exitCode: 125,
      stderr: expect.stringContaining('is a symbolic link to nothing'),
    });
  });

  test('opens a session that does not exist with --open only', async () => {
    await writeFile(join(local, 'f'), 'x');
    expect(await cli.text(['cp', join(local, 'f'), 'besdie:/workspace/f'])).toEqual({
      exitCode: 125,
      stdout: '',
      stderr:
        'shellfleet: There is no open session besdie. `shellfleet ps` lists the sessions; `shellfleet exec besdie -- true` opens it. (SESSION_NOT_FOUND)\n',
    });
    expect(await stack.fleet.attach('besdie')).toBeUndefined();
    expect((await cli.run(['cp', '--open', join(local, 'f'), 'opened:/workspace/f'])).exitCode).toBe(0);
    await (await stack.fleet.session('opened')).close();
  });

  test.each<[NodeJS.Signals, number]>([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])('leaves no partial or temporary file when %s ends it', async (signal, exitCode) => {
    await session.run('truncate -s 4G sparse');
    const copy = cli.start(['cp', 'beside:/workspace/sparse', join(local, 'sparse')]);
    await expect.poll(() => readdir(local), { timeout: 20_000 }).not.toEqual([]);
    copy.child.kill(signal);
    expect(await copy.end).toMatchObject({ exitCode });
    expect(await readdir(local)).toEqual([]);
    await session.run('rm sparse');
  });

  test('shows progress at a terminal, and not with CI', async () => {
    await session.run('head -c 3000000 /dev/zero > zeros');
    const words = ['cp', 'beside:/workspace/zeros', join(local, 'zeros')];
    const shown = await cli.atTerminal(words, async () => {}, { env: { TERM: 'xterm' } });
    expect(shown).toMatchObject({ exitCode: 0, shown: expect.stringContaining('beside:/workspace/zeros: 3.0 MB') });
    const quiet = await cli.atTerminal(words, async () => {}, { env: { TERM: 'xterm', CI: '1' } });
    expect(quiet.shown).toBe(`shellfleet: beside:/workspace/zeros → ${join(local, 'zeros')}\r\n`);
  });
});
