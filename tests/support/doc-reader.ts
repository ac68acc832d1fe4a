import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import { inject } from 'vitest';
import { expectedTexts, type Fence } from './doc-fences.ts';
import { follow } from './run-cli.ts';
import type { TestFleet } from './start-fleet.ts';

const node = ['--conditions=@shellfleet/source', '--no-warnings'];
/** Packages that the programs of the documents import. */
const packages = [
  '@shellfleet/client',
  '@modelcontextprotocol/client',
  '@shellfleet/langchain',
  '@shellfleet/policy',
  '@shellfleet/protocol',
  'langchain',
  'zod',
  '@types/node',
];

/**
 * Plays a person who follows the documents, in a directory outside of the checkout in which the packages are installed.
 */
export class DocReader implements AsyncDisposable {
  readonly directory: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(directory: string) {
    this.directory = directory;
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const PYTHONPATH = join(checkoutRoot, 'clients/python/src');
    this.#env = { PATH: `${join(directory, '.bin')}:${PATH}`, HOME: directory, NODE_COMPILE_CACHE, PYTHONPATH };
  }

  static async install(): Promise<DocReader> {
    const directory = await mkdtemp(join(tmpdir(), 'doc-reader-'));
    for (const name of packages) {
      const link = join(directory, 'node_modules', name);
      await mkdir(join(link, '..'), { recursive: true });
      await symlink(join(checkoutRoot, 'node_modules', name), link);
    }
    await writeFile(join(directory, 'package.json'), '{"type":"module"}');
    const compilerOptions = {
      noEmit: true,
      types: ['node'],
      tsBuildInfoFile: null,
      incremental: false,
      composite: false,
    };
    const settings = { extends: join(checkoutRoot, 'tsconfig.base.json'), compilerOptions, include: ['*.ts'] };
    await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(settings));
    // Stands in for npx: runs the command line of this checkout, or the Node of this process.
    const npx = `#!/bin/sh
case $1 in
  shellfleet) shift; exec '${process.execPath}' --no-warnings '${inject('programs').cli}' "$@" ;;
  node) shift; exec '${process.execPath}' "$@" ;;
  *) echo "npx $1: not installed here" >&2; exit 127 ;;
esac
`;
    await mkdir(join(directory, '.bin'));
    await writeFile(join(directory, '.bin/npx'), npx);
    await chmod(join(directory, '.bin/npx'), 0o755);
    return new DocReader(directory);
  }

  /** Lets the programs of the documents find an API with this key. */
  async useApi(url: string, key: string): Promise<void> {
    const header = join(this.directory, '.api-header');
    await writeFile(header, `Authorization: Bearer ${key}\n`, { mode: 0o600 });
    Object.assign(this.#env, { SHELLFLEET_URL: url, SHELLFLEET_API_KEY: key, API_HEADER: header });
  }

  use(fleet: Pick<TestFleet, 'redisUrl' | 'namespace' | 'sealKey' | 'stateDirectory'>): void {
    const { redisUrl, namespace, sealKey, stateDirectory } = fleet;
    Object.assign(this.#env, {
      SHELLFLEET_REDIS_URL: redisUrl,
      SHELLFLEET_NAMESPACE: namespace,
      SHELLFLEET_SEAL_KEY: sealKey,
      SHELLFLEET_STATE_DIR: stateDirectory,
    });
  }

  /** Saves a program of the documents. */
  async save(fence: Fence): Promise<string> {
    const name = fence.file ?? `${fence.place.replaceAll(/[^A-Za-z0-9]+/g, '-')}.ts`;
    const { ts } = fence.setup;
    // The declarations of the set-up come first. They may stand before the imports of the fence.
    await writeFile(join(this.directory, name), `${ts}\n${fence.code}\nexport {};\n`);
    return name;
  }

  /** Compiles all saved programs. Returns the output of the compiler. */
  async compile(): Promise<string> {
    const { stdout } = await this.#run(join(checkoutRoot, 'node_modules/.bin/tsc'), ['-p', '.']);
    return stdout;
  }

  /** Runs a fence. Returns a message for each difference from the document, or none if all is as documented. */
  async try(fence: Fence): Promise<string[]> {
    if (fence.setup.sh !== '') await this.#script(fence.setup.sh);
    if (fence.language === 'sh') return this.#trySh(fence);
    return fence.language === 'py' ? this.#tryPy(fence) : this.#tryTs(fence);
  }

  async #tryPy(fence: Fence): Promise<string[]> {
    const path = join(this.directory, 'program.py');
    await writeFile(path, fence.code);
    return describe(fence, await this.#run('/usr/bin/python3', ['-W', 'error', path]));
  }

  async #tryTs(fence: Fence): Promise<string[]> {
    return describe(fence, await this.#run(process.execPath, [...node, await this.save(fence)]));
  }

  /** Runs all statements in one shell. Each must succeed, and print the text that the document states. */
  async #trySh(fence: Fence): Promise<string[]> {
    const statements = toStatements(fence.code);
    const marked = statements.map((text, index) => `${text}\nprintf '\\n%s %s\\n' '@end ${index}' "$?"`);
    const { stdout } = await this.#script(`exec 2>&1\n${marked.join('\n')}`);
    const wrong: string[] = [];
    let rest = stdout;
    for (const [index, statement] of statements.entries()) {
      const [output = '', after = ''] = rest.split(`\n@end ${index} `);
      const missing = expectedTexts(statement).filter((text) => !output.includes(text));
      const exitCode = after.split('\n')[0];
      if (exitCode !== '0' || missing.length > 0)
        wrong.push(
          `${fence.place}: ${statement}: ended with ${exitCode}, without ${JSON.stringify(missing)}: ${output}`,
        );
      rest = after.slice(after.indexOf('\n') + 1);
    }
    return wrong;
  }

  #script(script: string) {
    return this.#run('bash', ['-c', script]);
  }

  async #run(file: string, args: string[]) {
    const { child, end } = follow(
      spawn(file, args, { cwd: this.directory, env: this.#env, stdio: ['pipe', 'pipe', 'pipe'] }),
    );
    child.stdin?.end();
    const { exitCode, stdout, stderr } = await end;
    return { exitCode, stdout: stdout.toString(), stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Returns a message if a program failed, or did not print what the document says. */
function describe(fence: Fence, run: { exitCode: number | null; stdout: string; stderr: string }): string[] {
  const { exitCode, stdout, stderr } = run;
  const missing = expectedTexts(fence.code).filter((text) => !stdout.includes(text));
  if (exitCode === 0 && missing.length === 0) return [];
  return [`${fence.place}: ended with ${exitCode}, without ${JSON.stringify(missing)}: ${stdout}${stderr}`];
}

/**
 * Joins lines that belong together. A line continues the previous one if that ends in a backslash or if the line
 * begins with a blank.
 */
function toStatements(code: string): string[] {
  const statements: string[] = [];
  let goesOn = false;
  for (const line of code.split('\n')) {
    if (goesOn || /^\s/.test(line)) statements.push(`${statements.pop()}\n${line}`);
    else if (line !== '' && !line.startsWith('#')) statements.push(line);
    goesOn = line.endsWith('\\');
  }
  return statements;
}
