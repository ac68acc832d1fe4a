import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

// The Python client as users install it: wheel and sdist are built by Debian's setuptools, without any index.

const python = '/usr/bin/python3';
const run = promisify(execFile);
const env = { PATH: process.env.PATH, HOME: process.env.HOME, PYTHONDONTWRITEBYTECODE: '1' };
const client = join(checkoutRoot, 'clients/python');

let directory: string;
const inDirectory = (...parts: string[]) => join(directory, ...parts);

/** Builds with the backend that pyproject.toml names, and returns the name of the result. */
async function build(what: 'sdist' | 'wheel', source: string): Promise<string> {
  const program = `from setuptools import build_meta; build_meta.build_${what}('../dist')`;
  const before = await readdir(inDirectory('dist')).catch((): string[] => []);
  await run(python, ['-c', program], { cwd: source, env });
  const [made = ''] = (await readdir(inDirectory('dist'))).filter((name) => !before.includes(name));
  return inDirectory('dist', made);
}

let sdist: string;
let wheel: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-python-'));
  await cp(client, inDirectory('source'), { recursive: true, dereference: true });
  sdist = await build('sdist', inDirectory('source'));
  await run('tar', ['xzf', sdist], { cwd: directory });
  // What is in the wheel has to be in the sdist, too.
  wheel = await build('wheel', sdist.replace('/dist/', '/').replace('.tar.gz', ''));
}, 60_000);
afterAll(() => rm(directory, { recursive: true, force: true }));

describe('the Python client', () => {
  test('has the version of the other packages, and needs none', async () => {
    const { version } = JSON.parse(await readFile(join(checkoutRoot, 'package.json'), 'utf8'));
    const names = [sdist, wheel].map((path) => path.split('/').at(-1));
    expect(names).toEqual([`shellfleet-${version}.tar.gz`, `shellfleet-${version}-py3-none-any.whl`]);
    const { stdout } = await run(python, ['-m', 'zipfile', '-e', wheel, inDirectory('wheel')], { env });
    const metadata = await readFile(inDirectory('wheel', `shellfleet-${version}.dist-info`, 'METADATA'), 'utf8');
    expect(stdout).toBe('');
    expect(metadata).toMatch(/^Requires-Python: >=3\.10$/m);
    expect(metadata).not.toMatch(/^Requires-Dist:/m);
  });

  test('holds every module, the mark of types and the licence, and no test', async () => {
    const program = 'import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep="\\n")';
    const { stdout } = await run(python, ['-c', program, wheel], { env });
    const source = await readdir(join(client, 'src'), { recursive: true, withFileTypes: true });
    const modules = source
      .filter((entry) => entry.isFile() && /\.py$|^py\.typed$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).replace(`${client}/src/`, ''));
    const others = ['LICENSE', 'METADATA', 'RECORD', 'WHEEL', 'top_level.txt'];
    const files = stdout.trim().split('\n');
    expect(files.filter((path) => path.startsWith('shellfleet/')).sort()).toEqual(modules.sort());
    expect(files.filter((path) => path.includes('.dist-info/')).map((path) => path.split('/').at(-1))).toEqual(
      expect.arrayContaining(others),
    );
    expect(files.length).toBe(modules.length + others.length);
  });

  test('works after its installation into a fresh environment', async () => {
    await run(python, ['-m', 'venv', inDirectory('venv')], { env });
    const own = inDirectory('venv/bin/python');
    await run(own, ['-m', 'pip', 'install', '--no-index', '--no-cache-dir', '--disable-pip-version-check', wheel], {
      env,
    });
    const program = `
import shellfleet, shellfleet.sync
print(shellfleet.__file__)
try:
    shellfleet.sync.Fleet.connect("http://127.0.0.1:9", "key")
except shellfleet.ShellfleetError as error:
    print(error.code, error.retryable)`;
    const { stdout, stderr } = await run(own, ['-W', 'error', '-c', program], { env, cwd: directory });
    expect({ stdout: stdout.split('\n'), stderr }).toEqual({
      stdout: [expect.stringContaining(inDirectory('venv')), 'QUEUE_UNAVAILABLE True', ''],
      stderr: '',
    });
  });
});
