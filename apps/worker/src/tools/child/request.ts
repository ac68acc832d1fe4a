import type { ToolError, ToolOffer } from '@shellfleet/protocol';

// The messages between a worker and the process of a call: one line of JSON each. On stdin are the request and the arguments. On descriptor 3 are one byte when the request was read, the report, and the output. stdout and stderr belong to the tool.

export const REPORT_DESCRIPTOR = 3;
/** The process has its request, and begins with it. */
export const BEGUN = '+';

export type ChildRequest =
  | { type: 'describe'; module: string }
  | { type: 'call'; module: string; exported: string; name: string; outputBytes: number };

/** A tool as its module defines it. */
export interface DescribedTool extends ToolOffer {
  exported: string;
  memoryBytes: number;
  /** Whether `timeoutMs` is the maximum for callers. */
  timeoutIsMost: boolean;
}

export type ChildReport =
  /** `dataBytes`: memory of the runtime itself, before a module is loaded. */
  | { type: 'described'; tools: DescribedTool[]; dataBytes: number }
  | { type: 'refused'; message: string }
  /** The output follows as JSON. `redacted`: the process has redacted it, because it is large. */
  | { type: 'output'; redacted: boolean }
  | { type: 'failed'; error: ToolError };
