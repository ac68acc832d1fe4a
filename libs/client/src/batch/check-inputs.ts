import { access, constants } from 'node:fs/promises';
import { ShellfleetError } from '@shellfleet/protocol';
import { IdSet } from './id-set.ts';
import type { Task } from './task.ts';
import { inputFiles } from './task-outputs.ts';

/** Check of the local paths of `files`, which looks at each path once, however many tasks upload it. */
export class InputCheck {
  readonly #repeats: number;
  readonly #seen = new IdSet();

  constructor(repeats: number) {
    this.#repeats = repeats;
  }

  /** Throws COMMAND_INVALID for the first local path that does not exist or is not readable. */
  async check({ id, files = {} }: Task, what: string): Promise<void> {
    const differ = Object.values(files).some((local) => local.includes('{repeat}'));
    for (let repeat = 1; repeat <= (differ ? this.#repeats : 1); repeat++) {
      for (const [path, local] of Object.entries(inputFiles(files, id, repeat))) {
        if (!this.#seen.add(local)) continue;
        await access(local, constants.R_OK).catch((cause: Error) => {
          const message = `${what} is not valid: files.${path} of task ${JSON.stringify(id)}: ${cause.message}`;
          throw new ShellfleetError('COMMAND_INVALID', message, { id, path: local }, { cause });
        });
      }
    }
  }
}
