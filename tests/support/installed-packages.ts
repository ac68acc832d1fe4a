import { type ExecFileOptions, execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';

const run = promisify(execFile);

/** A project outside of the checkout, with every package installed from its tarball. */
export interface InstalledProject {
  directory: string;
  /** Path of the Node that runs the programs of this project. */
  node: string;
  /** Environment of processes of the project: `node` is first on PATH, and settings of this test run are left out. */
  env: NodeJS.ProcessEnv;
}

const ofThisRun = /^(npm_(?!config_)|NODE_(ENV|OPTIONS|COMPILE_CACHE)$|SHELLFLEET_|VITEST)/;

/** Installs the tarballs in a new project, with a version of Node. */
export async function installPackages(tarballs: string, version: string, directory: string): Promise<InstalledProject> {
  const node = await nodeOf(version);
  const env = environmentOf(node, directory);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'package.json'), '{ "name": "a-project", "private": true, "type": "module" }');
  const { devDependencies } = JSON.parse(await readFile(join(checkoutRoot, 'package.json'), 'utf8'));
  // Installs all tarballs in one call, as README says: they depend on each other in a version that no registry has.
  const ours = (await readdir(tarballs)).map((file) => join(tarballs, file));
  await install({ directory, node, env }, ...ours, `@types/node@${devDependencies['@types/node']}`);
  await cp(join(checkoutRoot, 'tests/fixtures/installed'), directory, { recursive: true });
  return { directory, node, env };
}

/** Returns the same project with another Node. Throws if that Node could not install the same versions. */
export async function withNode(installed: InstalledProject, version: string): Promise<InstalledProject> {
  const node = await nodeOf(version);
  const project = { directory: installed.directory, node, env: environmentOf(node, installed.directory) };
  const trial = join(dirname(installed.directory), `trial-${version}`);
  await mkdir(trial);
  for (const name of ['package.json', 'package-lock.json']) await cp(join(project.directory, name), join(trial, name));
  await install({ ...project, directory: trial }, '--dry-run');
  return project;
}

function environmentOf(node: string, directory: string): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !ofThisRun.test(name));
  return {
    ...Object.fromEntries(inherited),
    PATH: [dirname(node), process.env.PATH].join(delimiter),
    // Keeps the command line's compile cache in the project and out of the home directory of this user.
    XDG_CACHE_HOME: join(directory, 'cache'),
  };
}

async function install({ directory, node, env }: InstalledProject, ...flags: string[]): Promise<void> {
  const rules = ['--engine-strict', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  await run(node, [await npmPath(), 'install', ...rules, ...flags], { cwd: directory, env });
}

/** Runs a program of the project with its Node. */
export async function runInProject(
  { directory, node, env }: InstalledProject,
  args: string[],
  options: ExecFileOptions = {},
): Promise<string> {
  const { stdout } = await run(node, args, { cwd: directory, ...options, env: { ...env, ...options.env } });
  return String(stdout);
}

/**
 * Returns the path of a Node of this version. Installs it from npm once per checkout, unless this process runs such a
 * Node.
 */
async function nodeOf(version: string): Promise<string> {
  if (process.versions.node.startsWith(`${version}.`)) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const directory = join(checkoutRoot, '.cache/nodes', version);
  const node = join(directory, 'node_modules', name, 'bin/node');
  if ((await run(node, ['--version']).catch(() => undefined)) === undefined) {
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'package.json'), '{ "private": true }');
    await run('npm', ['install', `${name}@${version}`, '--prefer-offline', '--no-audit', '--no-fund'], {
      cwd: directory,
    });
  }
  return node;
}

/** Returns the path of npm's JavaScript program, so that a chosen Node can run it. */
async function npmPath(): Promise<string> {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = await realpath(join(directory, 'npm')).catch(() => undefined);
    if (path?.endsWith('npm-cli.js')) return path;
  }
  throw new Error('There is no npm on PATH.');
}
