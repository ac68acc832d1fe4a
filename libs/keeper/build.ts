// Builds the keeper and its launcher from C: once per state of the source for this machine, and for the published
// package.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { MissingBuildTool } from './src/missing-build-tool.ts';

const run = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
const sourceDirectories = {
  keeper: join(here, 'src'),
  launch: join(here, 'launcher'),
  builtin: join(here, 'builtin'),
};
const libraries = { keeper: ['-lsodium'], launch: [] };
const buildDirectory = join(here, 'build');

// Static builds, because an image may have no C library. Debian's musl-gcc is not among the compilers: it links only
// libraries that were compiled for musl, and Debian has no such libsodium.
export const COMPILERS: readonly string[] = ['cc', 'gcc', 'clang'];
const flags = [
  '-std=gnu11',
  '-static',
  '-O2',
  '-s',
  '-Wall',
  '-Wextra',
  '-fstack-protector-strong',
  '-D_FORTIFY_SOURCE=2',
];
// The builtin is loaded into the bash of any image, so it uses no C library. It runs scripts while it is on the stack,
// so it stays in memory when a script makes bash unload it (nodelete).
const builtinFlags = [
  '-std=gnu11',
  '-shared',
  '-fPIC',
  '-O2',
  '-s',
  '-Wall',
  '-Wextra',
  '-ffreestanding',
  '-nostdlib',
  '-fno-stack-protector',
  '-fvisibility=hidden',
  '-Wl,-z,nodelete,-z,now,-z,relro,-z,noexecstack',
];

export interface Programs {
  /** Main process of every session. */
  keeper: string;
  /** Program that starts the keeper on a host without a container. */
  launch: string;
}

/** Returns the paths of the programs. Throws MissingBuildTool, which names the package to install. */
export async function buildKeeper(): Promise<Programs> {
  const directory = join(buildDirectory, `${arch()}-${await hashOfSources()}`);
  const programs = { keeper: join(directory, 'keeper'), launch: join(directory, 'launch') };
  if ((await exists(programs.keeper)) && (await exists(programs.launch))) return programs;
  await buildInto(directory, COMPILERS);
  await removeOthers(directory);
  return programs;
}

/** Builds both programs with the first candidate that is installed. */
export async function buildInto(directory: string, candidates: readonly string[]): Promise<void> {
  await mkdir(directory, { recursive: true });
  await put(join(directory, 'shell_script.h'), await shellScriptHeader());
  await put(join(directory, 'shell_builtin.h'), await builtinHeader(directory, candidates));
  for (const name of ['keeper', 'launch'] as const) {
    const inputs = [...(await readSources(sourceDirectories[name])), ...libraries[name]];
    await build(join(directory, name), inputs, directory, candidates);
  }
}

async function build(
  program: string,
  inputs: string[],
  directory: string,
  candidates: readonly string[],
): Promise<void> {
  const unfinished = `${program}.${process.pid}`;
  await compile(candidates, [...flags, '-I', directory, '-o', unfinished, ...withoutHeaders(inputs)]);
  await chmod(unfinished, 0o755);
  await rename(unfinished, program); // another process never finds a part of it
}

/** Returns the shell's loop as a C string. */
async function shellScriptHeader(): Promise<string> {
  const script = await readFile(join(sourceDirectories.keeper, 'shell.sh'), 'utf8');
  const lines = script.split('\n').map((line) => `  ${JSON.stringify(`${line}\n`)}`);
  return `static const char SHELL_SCRIPT[] =\n${lines.join('\n')};\n`;
}

/** Returns the compiled builtin as an array of C. */
async function builtinHeader(directory: string, candidates: readonly string[]): Promise<string> {
  const unfinished = join(directory, `builtin.${process.pid}`);
  const inputs = withoutHeaders(await readSources(sourceDirectories.builtin));
  await compile(candidates, [...builtinFlags, '-o', unfinished, ...inputs]);
  const bytes = await readFile(unfinished);
  await rm(unfinished);
  return `static const unsigned char SHELL_BUILTIN[] = {${bytes.join(',')}};\n`;
}

/** Writes a file so that another process never finds a part of it. */
async function put(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${process.pid}`;
  await writeFile(unfinished, text);
  await rename(unfinished, path);
}

const withoutHeaders = (inputs: string[]) => inputs.filter((input) => !/\.(h|sh)$/.test(input));

async function readSources(directory: string): Promise<string[]> {
  const names = (await readdir(directory)).filter((name) => /\.(c|h|sh)$/.test(name)).sort();
  return names.map((name) => join(directory, name));
}

/** Returns a name for the state of the source and of the flags. */
export async function hashOfSources(): Promise<string> {
  const hash = createHash('sha256').update([...flags, ...builtinFlags, ...Object.values(libraries).flat()].join(' '));
  for (const directory of Object.values(sourceDirectories)) {
    for (const path of await readSources(directory)) hash.update(await readFile(path));
  }
  return hash.digest('hex').slice(0, 16);
}

async function compile(candidates: readonly string[], args: string[]): Promise<void> {
  for (const compiler of candidates) {
    try {
      await run(compiler, args);
      return;
    } catch (error) {
      const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
      if (
        /sodium\.h: No such file|'sodium\.h' file not found|(cannot find|library not found for) -lsodium/.test(
          stderr ?? '',
        )
      )
        throw new MissingBuildTool(
          `${compiler} finds no static libsodium to build the keeper. Install it, for instance with: apt-get install libsodium-dev`,
          { cause: error },
        );
      if (code !== 'ENOENT') throw error;
    }
  }
  const example = 'Install one, for instance with: apt-get install gcc libc6-dev';
  throw new MissingBuildTool(
    `No C compiler was found to build the keeper (tried ${candidates.join(', ')}). ${example}`,
  );
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Removes builds of older sources. A session that still runs an old build keeps its file open. */
async function removeOthers(keep: string): Promise<void> {
  for (const name of await readdir(buildDirectory)) {
    if (join(buildDirectory, name) !== keep) await rm(join(buildDirectory, name), { recursive: true, force: true });
  }
}
