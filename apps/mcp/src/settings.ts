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

/** Bounds of the output that a model reads: the sizes of Codex, with the end of the output, where most errors are. */
export const MODEL_OUTPUT = { ...OUTPUT_PROFILES.codex, keep: 'head-tail' } as const;

/** Returns the spec of new sessions. Their output is small enough for a model unless the operator asks for more. */
export const specOf = ({ spec }: McpSettings): SessionSpec => ({
  ...spec,
  output: { ...MODEL_OUTPUT, ...spec.output },
});
