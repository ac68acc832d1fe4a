import { type ExecFileOptions, execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';

const run = promisify(execFile);

/** A project outside of the checkout, with every package installed from its tarball. */
export interface InstalledProject {
  directory: string;
  /** Plain Node of the version that installed it. */
  node: string;
  /** Variables of its processes: that Node first on PATH, and no settings of this run. */
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
  // As README has it: all at once, because each asks for others of this version, which no registry has.
  const ours = (await readdir(tarballs)).map((file) => join(tarballs, file));
  await install({ directory, node, env }, ...ours, `@types/node@${devDependencies['@types/node']}`);
  await cp(join(checkoutRoot, 'tests/fixtures/installed'), directory, { recursive: true });
  return { directory, node, env };
}

/** The same project with another Node, if that one could install the same versions as well. */
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
    // What the command line compiles is left in the project, not with this user.
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

/** Node itself comes from the registry, once for this checkout. The one that runs this serves its own major version. */
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

/** npm's own program, to be run with another Node than its launcher finds. */
async function npmPath(): Promise<string> {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = await realpath(join(directory, 'npm')).catch(() => undefined);
    if (path?.endsWith('npm-cli.js')) return path;
  }
  throw new Error('There is no npm on PATH.');
}
