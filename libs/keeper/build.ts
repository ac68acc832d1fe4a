// Builds the keeper from its C source with whatever C compiler there is, once per state of the source.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const sourceFolder = join(import.meta.dirname, 'src');
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

/** Answers with the path of the program. Throws, with what to install, where nothing can compile it. */
export async function buildKeeper(): Promise<string> {
  const sources = await readSources();
  const folder = join(buildFolder, `${arch()}-${await hashOfFiles(sources)}`);
  const program = join(folder, 'keeper');
  if (await exists(program)) return program;
  await mkdir(folder, { recursive: true });
  const header = join(folder, `shell_script.${process.pid}`);
  await writeFile(header, await shellScriptHeader());
  await rename(header, join(folder, 'shell_script.h'));
  const unfinished = join(folder, `keeper.${process.pid}`);
  await compile([...flags, '-I', folder, '-o', unfinished, ...sources.filter((path) => path.endsWith('.c'))]);
  await chmod(unfinished, 0o755);
  await rename(unfinished, program); // whoever finds it finds it whole
  await removeOthers(folder);
  return program;
}

/** The shell's loop as a C string. */
async function shellScriptHeader(): Promise<string> {
  const script = await readFile(join(sourceFolder, 'shell.sh'), 'utf8');
  const lines = script.split('\n').map((line) => `  ${JSON.stringify(`${line}\n`)}`);
  return `static const char SHELL_SCRIPT[] =\n${lines.join('\n')};\n`;
}

async function readSources(): Promise<string[]> {
  const names = (await readdir(sourceFolder)).filter((name) => /\.(c|h|sh)$/.test(name)).sort();
  return names.map((name) => join(sourceFolder, name));
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

/** Builds of older sources; a session that still runs one holds its own copy open. */
async function removeOthers(keep: string): Promise<void> {
  for (const name of await readdir(buildFolder)) {
    if (join(buildFolder, name) !== keep) await rm(join(buildFolder, name), { recursive: true, force: true });
  }
}
