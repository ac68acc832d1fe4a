// npm run bash-versions: runs the tests of shells on the versions of bash that take the builtin and that the session
// images do not have. CI runs the same tests on the version of the session images alone, because no commit should need
// downloads of other suites of Debian. A version or a package that cannot be had is an error.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ensureMachine, stopDocker } from '@shellfleet/setup';
import { docker } from './images/docker-program.ts';

const run = promisify(execFile);

interface Version {
  version: string;
  /** Suite of Debian that has it. */
  suite: string;
  /** Names of its packages. The C library is among them where that of the session image is too old for it. */
  packages: string[];
  /** Titles of rows that this bash does not fulfil to the letter. */
  differs: string[];
}

const VERSIONS: Version[] = [
  {
    version: '5.1',
    suite: 'bullseye',
    packages: ['bash'],
    // bash 5.1 saves that state whole, and names the bracket where 5.2 names the here-document inside it.
    differs: ['a read-only local hides the global variable', 'an open here-document is found while extglob is on'],
  },
  { version: '5.3', suite: 'forky', packages: ['bash', 'libc6', 'libtinfo6'], differs: [] },
];
const FILES = ['builtin', 're-execution', 'robustness', 'semantics', 'sequences', 'stop'];

async function main(): Promise<number> {
  const machine = await ensureMachine(process.env, console.error);
  const directory = await mkdtemp(join(tmpdir(), 'bash-versions-'));
  let failed = 0;
  try {
    for (const version of VERSIONS) {
      const image = await makeImage(version, machine.sessionImage, join(directory, version.suite));
      console.log(await docker(['run', '--rm', '--entrypoint', '/bin/bash', image, '-c', 'echo "bash $BASH_VERSION"']));
      if ((await test(image, version)) !== 0) failed += 1;
      await docker(['rmi', '--force', image]);
    }
  } finally {
    await rm(directory, { recursive: true });
    if (machine.engine.startedHere) await stopDocker(process.env);
  }
  return failed === 0 ? 0 : 1;
}

/** Makes an image that is the session image with another bash. */
async function makeImage({ version, suite, packages }: Version, base: string, directory: string): Promise<string> {
  await downloadPackages(suite, packages, directory);
  const root = join(directory, 'root');
  for (const name of await readdir(directory))
    if (name.endsWith('.deb')) await run('dpkg-deb', ['--extract', join(directory, name), root]);
  // The session image has the merged /usr, and docker would replace its links with directories.
  await cp(join(root, 'bin'), join(root, 'usr/bin'), { recursive: true }).catch(() => {});
  await rm(join(root, 'usr/share'), { recursive: true, force: true });
  const image = `shellfleet-bash-versions:${version}`;
  const container = (await docker(['create', '--entrypoint', '/bin/true', base])).trim();
  try {
    await docker(['cp', `${root}/usr/.`, `${container}:/usr`]);
    await docker(['commit', container, image]);
  } finally {
    await docker(['rm', '--force', container]);
  }
  return image;
}

/** Downloads packages of another suite from the mirror of this machine. apt checks their signatures. */
async function downloadPackages(suite: string, packages: string[], directory: string): Promise<void> {
  for (const name of ['lists/partial', 'cache/archives/partial'])
    await mkdir(join(directory, name), { recursive: true });
  const filters = ['Created-By: Packages', 'Origin: Debian', 'Label: Debian'];
  const { stdout } = await run('apt-get', ['indextargets', '--format', '$(REPO_URI)', ...filters]);
  const [mirror] = stdout.split('\n');
  if (!mirror) throw new Error('apt has no list of Debian’s packages: run `apt-get update`.');
  await writeFile(join(directory, 'sources'), `deb ${mirror} ${suite} main\n`);
  const options = Object.entries({
    'Dir::Etc::SourceList': join(directory, 'sources'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State::Lists': join(directory, 'lists'),
    'Dir::State::Status': '/dev/null',
    'Dir::Cache': join(directory, 'cache'),
    'APT::Sandbox::User': 'root',
  }).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  await run('apt-get', ['-qq', ...options, 'update']);
  await run('apt-get', ['-qq', ...options, 'download', ...packages], { cwd: directory });
}

/** Resolves with the exit code of the tests. */
async function test(image: string, { differs }: Version): Promise<number> {
  const titles = ['\\b(dash|ash)\\b', ...differs].map((title) => `(?!.*${title})`).join('');
  const files = FILES.map((name) => `tests/integration/shell-${name}.test.ts`);
  const child = spawn('npx', ['vitest', 'run', '--project', 'integration', '-t', `^${titles}`, ...files], {
    stdio: 'inherit',
    env: { ...process.env, SHELLFLEET_TEST_IMAGE: image },
  });
  const [code] = await once(child, 'exit');
  return typeof code === 'number' ? code : 1;
}

process.exitCode = await main();
