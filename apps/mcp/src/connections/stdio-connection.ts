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

/** A connected fleet, and what its caller may do now. */
interface Opened {
  fleet: Fleet;
  /** Rejects with UNAUTHORIZED when the key does not work any more. */
  scopes(): Promise<ReadonlySet<Scope>>;
  close(): Promise<void>;
}

/** The one connection of a server on stdio. It connects at the first call, and again after a failure. */
export class StdioConnection implements McpConnection, AsyncDisposable {
  readonly settings: McpSettings;
  readonly defaultSession: string;
  readonly #identity: StdioIdentity;
  #opened: Promise<Opened> | undefined;

  constructor(settings: McpSettings, identity: StdioIdentity) {
    this.settings = settings;
    this.defaultSession = settings.session ?? `mcp-${randomBytes(4).toString('hex')}`;
    this.#identity = identity;
  }

  async open(): Promise<OpenFleet> {
    this.#opened ??= this.#connect().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    const opened = await this.#opened;
    return { fleet: opened.fleet, scopes: await opened.scopes() };
  }

  async #connect(): Promise<Opened> {
    const { apiKey, connect } = this.#identity;
    const own = await Fleet.connect(connect);
    if (apiKey === undefined) return { fleet: own, scopes: async () => SCOPES_OF_USER, close: () => own.close() };
    const access = openAccess(own, { log: { warn: ({ err }, event) => this.settings.log(`${event}: ${err}`) } });
    const close = async () => {
      access.close();
      await own.close();
    };
    // Each call asks again, so that a model loses its shells when its key is revoked.
    const identify = async () => {
      const principal = await access.authenticate(apiKey);
      if (principal === undefined) throw unknownKey();
      return principal;
    };
    try {
      const { tenant, caller } = await identify();
      const fleet = await Fleet.connect({ ...connect, tenant, caller });
      const closeBoth = async () => {
        await fleet.close();
        await close();
      };
      return { fleet, scopes: async () => (await identify()).scopes, close: closeBoth };
    } catch (error) {
      await close();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.close();
  }
}

function unknownKey(): ShellfleetError {
  const message = 'SHELLFLEET_API_KEY is not a key of this fleet, has expired, or was revoked.';
  return new ShellfleetError('UNAUTHORIZED', message);
}
