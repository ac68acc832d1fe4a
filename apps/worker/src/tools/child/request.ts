import type { ToolError, ToolOffer } from '@shellfleet/protocol';

// Between a worker and the process of a call, JSON both ways, one line first: the request on stdin (then the arguments), the report on
// descriptor 3 (then the output). What a tool prints goes elsewhere.

export const REPORT_DESCRIPTOR = 3;

export type ChildRequest =
  | { type: 'describe'; module: string }
  | { type: 'call'; module: string; exported: string; name: string; outputBytes: number };

/** A tool as its module defines it. */
export interface DescribedTool extends ToolOffer {
  exported: string;
  memoryBytes: number;
  /** whether `timeoutMs` is the most that a caller may ask for */
  timeoutIsMost: boolean;
}

export type ChildReport =
  /** `dataBytes`: what the runtime itself takes, before a module is loaded */
  | { type: 'described'; tools: DescribedTool[]; dataBytes: number }
  | { type: 'refused'; message: string }
  /** The output follows, as JSON. A large one is redacted: the worker has other things to do. */
  | { type: 'output'; redacted: boolean }
  | { type: 'failed'; error: ToolError };
