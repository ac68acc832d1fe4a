import type { Fleet } from '@shellfleet/client';
import type { Scope } from '@shellfleet/protocol';
import type { McpSettings } from '../settings.ts';

/** A fleet, and what the caller may do there. */
export interface OpenFleet {
  fleet: Fleet;
  scopes: ReadonlySet<Scope>;
}

/** Whom an MCP server serves. */
export interface McpConnection {
  readonly settings: McpSettings;
  /** Session of calls that name none. */
  readonly defaultSession: string | undefined;
  /** Connects if necessary. Rejects with QUEUE_UNAVAILABLE if there is no fleet, and with UNAUTHORIZED. */
  open(): Promise<OpenFleet>;
}
