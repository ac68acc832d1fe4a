import { randomBytes } from 'node:crypto';
import { openAccess } from '@shellfleet/access';
import { Fleet } from '@shellfleet/client';
import { type Scope, ShellfleetError } from '@shellfleet/protocol';
import type { McpSettings } from '../settings.ts';
import type { McpConnection, OpenFleet } from './connection.ts';

/** Whose fleet a server on stdio uses. */
export interface StdioIdentity {
  /** API key, whose tenant, name and scopes hold. Without it, the user of this process is the caller. */
  apiKey?: string | undefined;
  /** Options of `Fleet.connect`. */
  connect: { redisUrl?: string; namespace?: string; tenant?: string };
}

/** A user without a key runs commands and reads. Answers to questions need a key that says so. */
const SCOPES_OF_USER: ReadonlySet<Scope> = new Set(['submit', 'read']);

/** The one connection of a server on stdio. It connects at the first call, and again after a failure. */
export class StdioConnection implements McpConnection, AsyncDisposable {
  readonly settings: McpSettings;
  readonly defaultSession: string;
  readonly #identity: StdioIdentity;
  #opened: Promise<OpenFleet> | undefined;

  constructor(settings: McpSettings, identity: StdioIdentity) {
    this.settings = settings;
    this.defaultSession = settings.session ?? `mcp-${randomBytes(4).toString('hex')}`;
    this.#identity = identity;
  }

  open(): Promise<OpenFleet> {
    this.#opened ??= this.#connect().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #connect(): Promise<OpenFleet> {
    const { apiKey, connect } = this.#identity;
    const fleet = await Fleet.connect(connect);
    if (apiKey === undefined) return { fleet, scopes: SCOPES_OF_USER };
    const access = openAccess(fleet, { log: { warn: ({ err }, event) => this.settings.log(`${event}: ${err}`) } });
    try {
      const principal = await access.authenticate(apiKey);
      if (principal === undefined) throw unknownKey();
      const { tenant, caller, scopes } = principal;
      return { fleet: await Fleet.connect({ ...connect, tenant, caller }), scopes };
    } finally {
      access.close();
      await fleet.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.fleet.close();
  }
}

function unknownKey(): ShellfleetError {
  return new ShellfleetError('UNAUTHORIZED', 'SHELLFLEET_API_KEY is not a key of this fleet, or has expired.');
}
