// Builds the keeper and its launcher from their C source, once per state of the source, with the first C compiler that is found.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const sourceFolders = { keeper: join(import.meta.dirname, 'src'), launch: join(import.meta.dirname, 'launcher') };
const buildFolder = join(import.meta.dirname, 'build');

// musl makes it ten times smaller; both are static, because an image may hold no C library at all.
const compilers = ['musl-gcc', 'cc', 'gcc', 'clang'];
const flags = [
  '-std=gnu11',
  '-static',
  '-Os',
  '-s',
  '-Wall',
  '-Wextra',
  '-fstack-protector-strong',
  '-D_FORTIFY_SOURCE=2',
];

export interface Programs {
  /** The main process of every session. */
  keeper: string;
  /** Starts it on a host without a container. */
  launch: string;
}

/** Returns the paths of the programs. Throws when there is no C compiler, and names the package to install. */
export async function buildKeeper(): Promise<Programs> {
  const sources = { keeper: await readSources(sourceFolders.keeper), launch: await readSources(sourceFolders.launch) };
  const folder = join(buildFolder, `${arch()}-${await hashOfFiles([...sources.keeper, ...sources.launch])}`);
  const programs = { keeper: join(folder, 'keeper'), launch: join(folder, 'launch') };
  if ((await exists(programs.keeper)) && (await exists(programs.launch))) return programs;
  await mkdir(folder, { recursive: true });
  const header = join(folder, `shell_script.${process.pid}`);
  await writeFile(header, await shellScriptHeader());
  await rename(header, join(folder, 'shell_script.h'));
  await build(programs.keeper, sources.keeper, folder);
  await build(programs.launch, sources.launch, folder);
  await removeOthers(folder);
  return programs;
}

async function build(program: string, sources: string[], folder: string): Promise<void> {
  const unfinished = `${program}.${process.pid}`;
  await compile([...flags, '-I', folder, '-o', unfinished, ...sources.filter((path) => path.endsWith('.c'))]);
  await chmod(unfinished, 0o755);
  await rename(unfinished, program); // another process never finds a part of it
}

/** The shell's loop as a C string. */
async function shellScriptHeader(): Promise<string> {
  const script = await readFile(join(sourceFolders.keeper, 'shell.sh'), 'utf8');
  const lines = script.split('\n').map((line) => `  ${JSON.stringify(`${line}\n`)}`);
  return `static const char SHELL_SCRIPT[] =\n${lines.join('\n')};\n`;
}

async function readSources(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => /\.(c|h|sh)$/.test(name)).sort();
  return names.map((name) => join(folder, name));
}

async function hashOfFiles(paths: string[]): Promise<string> {
  const hash = createHash('sha256').update(flags.join(' '));
  for (const path of paths) hash.update(await readFile(path));
  return hash.digest('hex').slice(0, 16);
}

async function compile(args: string[]): Promise<void> {
  for (const compiler of compilers) {
    try {
      await run(compiler, args);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  throw new Error(
    'No C compiler was found to build the keeper (tried musl-gcc, cc, gcc, clang). Install one, for instance with: apt-get install gcc libc6-dev',
  );
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Removes builds of older sources. A session that still runs one has its own copy open. */
async function removeOthers(keep: string): Promise<void> {
  for (const name of await readdir(buildFolder)) {
    if (join(buildFolder, name) !== keep) await rm(join(buildFolder, name), { recursive: true, force: true });
  }
}
