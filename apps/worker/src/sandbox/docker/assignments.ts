import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tryJson } from '@shellfleet/protocol';
import { z } from 'zod';

// Records which session a container belongs to, if the container was created before that was known. The labels of a
// container cannot change, so the record is a file on the disk of the host.
//
// ASSIGN-1. A record is written before the session uses the container, so a container without one was never used.
// ASSIGN-2. A record is never replaced, so no container gets a second session. It stays as long as the container.

const assignmentSchema = z.object({ tenant: z.string().min(1), session: z.string().min(1), assignedAt: z.number() });
export type Assignment = z.infer<typeof assignmentSchema>;

export class Assignments {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async open(directory: string): Promise<Assignments> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    return new Assignments(directory);
  }

  /**
   * Records the session of a sandbox. Rejects if it has one. The file is not synced, because no container outlives a
   * crash of the kernel.
   */
  async write(sandboxId: string, assignment: Assignment): Promise<void> {
    await writeFile(this.#at(sandboxId), JSON.stringify(assignment), { flag: 'wx', mode: 0o600 });
  }

  /** Returns the record. Undefined when there is none, or only a part, because the worker died while it wrote. */
  async read(sandboxId: string): Promise<Assignment | undefined> {
    const text = await readFile(this.#at(sandboxId), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return '';
    });
    return assignmentSchema.safeParse(tryJson(text)).data;
  }

  async remove(sandboxId: string): Promise<void> {
    await rm(this.#at(sandboxId), { force: true });
  }

  /** Removes the records of all sandboxes except these. */
  async sweep(sandboxIds: ReadonlySet<string>): Promise<void> {
    const stale = (await readdir(this.#directory)).filter((name) => !sandboxIds.has(name));
    await Promise.all(stale.map((name) => this.remove(name)));
  }

  #at(sandboxId: string): string {
    return join(this.#directory, sandboxId);
  }
}
