import type { FileRecord } from '@shellfleet/protocol';
import { doStep, type FileSteps, SameSandbox } from './file-steps.ts';

/** Yields everything below a directory of the sandbox, page by page, for `depth` levels (0: without limit). */
export async function* walk(
  steps: FileSteps,
  path: string,
  depth: number,
  { signal, sandbox = new SameSandbox(path) }: { signal?: AbortSignal | undefined; sandbox?: SameSandbox } = {},
): AsyncGenerator<FileRecord[]> {
  for (let after = ''; ; ) {
    signal?.throwIfAborted();
    const { records = [], more = false } = sandbox.check(await doStep(steps, { name: 'list', path, depth, after }));
    yield records;
    const last = records.at(-1)?.name;
    if (!more || last === undefined || last === after) return;
    after = last;
  }
}
