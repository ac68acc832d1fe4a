import { OUTPUT_PROFILES, type SessionSpec } from '@shellfleet/client';

/** What the operator of an MCP server sets. */
export interface McpSettings {
  /** Version of the program, for clients. */
  version: string;
  /** Spec of the sessions that calls open. Calls cannot change it. */
  spec: SessionSpec;
  /** Session of calls that name none. Without it, each connection over stdio has its own, and HTTP has none. */
  session?: string | undefined;
  /** Longest time in ms until a call is answered. Many clients give a call up after 60 s. */
  answerWithinMs: number;
  /** Writes a line for the operator. */
  log(line: string): void;
}

/** The largest message of a client, in bytes: a file of `write_file` in base64, above all. */
export const MESSAGE_BYTES = 8 * 2 ** 20;

const MOST_SHOWN = 300;

/** Returns the beginning of an error's message. Errors of the protocol quote what the client sent. */
export const inShort = ({ message }: Error): string => message.replaceAll(/\s+/g, ' ').slice(0, MOST_SHOWN);

/** Bounds of the output that a model reads: the sizes of Codex, with the end of the output, where most errors are. */
export const MODEL_OUTPUT = { ...OUTPUT_PROFILES.codex, keep: 'head-tail' } as const;

/** Returns the spec of new sessions. Their output is small enough for a model unless the operator asks for more. */
export const specOf = ({ spec }: McpSettings): SessionSpec => ({
  ...spec,
  output: { ...MODEL_OUTPUT, ...spec.output },
});
