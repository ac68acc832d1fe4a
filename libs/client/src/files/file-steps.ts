import {
  type FileAnswer,
  type FileOperation,
  parseOrThrow,
  ShellfleetError,
  sandboxPathSchema,
} from '@shellfleet/protocol';
import { z } from 'zod';

// A file operation is one or several steps, each of which fits a message. Steps are done beside the mailbox, or as its entries.

export interface DoneStep extends FileAnswer {
  /** Of the shell that it was done under: steps with different epochs may have seen different sandboxes. */
  epoch: number;
}

export interface SentStep {
  answer(): Promise<DoneStep>;
}

export interface FileSteps {
  /** Steps that are done in the order in which they were sent, though none is waited for. */
  readonly ahead: number;
  /** Sends one step; resolves when it is accepted. */
  send(operation: FileOperation, describe?: DescribeStep): Promise<SentStep>;
}

/** Completes a step about which a person has to be asked: with size and digest of the file of which it is a part. */
export type DescribeStep = () => Promise<FileOperation>;

export async function doStep(steps: FileSteps, operation: FileOperation): Promise<DoneStep> {
  return (await steps.send(operation)).answer();
}

const pathSchema = z.object({ path: sandboxPathSchema });

export function parseSandboxPath(path: unknown): string {
  const shown = typeof path === 'string' ? JSON.stringify(path.slice(0, 200)) : typeof path;
  return parseOrThrow(pathSchema, { path }, 'PATH_INVALID', `The path ${shown}`).path;
}

/** Refuses a step that saw another sandbox than the first one: what was copied so far may be of two. */
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
