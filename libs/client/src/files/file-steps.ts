import {
  type FileOperation,
  type FileReply,
  parseOrThrow,
  ShellfleetError,
  sandboxPathSchema,
} from '@shellfleet/protocol';
import { z } from 'zod';

// A file operation consists of steps, each of which fits into one message. A step is an entry of the mailbox, or a
// request to the host.

export interface DoneStep extends FileReply {
  /** Epoch of the step's shell. Steps of different epochs may have seen different sandboxes. */
  epoch: number;
}

export interface SentStep {
  reply(): Promise<DoneStep>;
}

export interface FileSteps {
  /**
   * Number of steps that may be sent before the first of them is done. They run in the order in which they were sent.
   */
  readonly ahead: number;
  send(operation: FileOperation, describe?: DescribeStep): Promise<SentStep>;
}

/** Adds size and digest of the whole file to a step about which a person has to be asked. */
export type DescribeStep = () => Promise<FileOperation>;

export async function doStep(steps: FileSteps, operation: FileOperation): Promise<DoneStep> {
  return (await steps.send(operation)).reply();
}

const pathSchema = z.object({ path: sandboxPathSchema });

export function parseSandboxPath(path: unknown): string {
  const shown = typeof path === 'string' ? JSON.stringify(path.slice(0, 200)) : typeof path;
  return parseOrThrow(pathSchema, { path }, 'PATH_INVALID', `The path ${shown}`).path;
}

/**
 * Checks that all steps ran in one sandbox. Refuses a step in another sandbox, because the copy could mix the contents
 * of two.
 */
export class SameSandbox {
  readonly #path: string;
  #epoch: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  check<T extends DoneStep>(step: T): T {
    this.#epoch ??= step.epoch;
    if (step.epoch === this.#epoch) return step;
    throw new ShellfleetError(
      'CONTAINER_LOST',
      `The shell was replaced while ${this.#path} was being copied, so its parts may be of two sandboxes. Copy it again.`,
      { path: this.#path },
    );
  }
}
