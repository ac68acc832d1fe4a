import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';

const run = promisify(execFile);
const MOST_BYTES = 64 * 2 ** 20;
/** Directory for what kubectl knows of clusters, which is otherwise in the home, also in one that does not exist. */
const CACHE = join(tmpdir(), 'shellfleet-kubectl-cache');

const listSchema = z.object({ items: z.array(z.unknown()) });

/** kubectl with one configuration and namespace. */
export class Kubectl {
  readonly #program: string;
  readonly #kubeconfig: string;
  readonly namespace: string;

  constructor(program: string, kubeconfig: string, namespace: string) {
    this.#program = program;
    this.#kubeconfig = kubeconfig;
    this.namespace = namespace;
  }

  /** Arguments and environment for a process that the caller starts. */
  command(args: readonly string[]): { program: string; args: string[] } {
    return {
      program: this.#program,
      args: ['--kubeconfig', this.#kubeconfig, '--namespace', this.namespace, `--cache-dir=${CACHE}`, ...args],
    };
  }

  /** Returns stdout. Throws with what kubectl printed. */
  async run(args: readonly string[], stdin?: string): Promise<string> {
    const { program, args: words } = this.command(args);
    const running = run(program, words, { maxBuffer: MOST_BYTES });
    running.child.stdin?.end(stdin ?? '');
    const { stdout } = await running.catch((error: Error & { stderr?: string }) => {
      throw new Error(`kubectl ${args.join(' ')}: ${error.stderr?.trim() || error.message}`);
    });
    return stdout;
  }

  async get<T>(schema: z.ZodType<T>, ...args: string[]): Promise<T> {
    return schema.parse(JSON.parse(await this.run(['get', ...args, '--output=json'])));
  }

  async list<T>(schema: z.ZodType<T>, ...args: string[]): Promise<T[]> {
    const { items } = await this.get(listSchema, ...args);
    return items.map((item) => schema.parse(item));
  }
}
