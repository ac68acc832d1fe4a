import { readFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { ApiUnreachable } from './api-errors.ts';

/** Where the API server is, and how it and the worker prove themselves. */
export interface ApiSettings {
  /** Address, such as `https://10.96.0.1:443`. */
  server: string;
  /** File with the certificates that sign the server's. Default: those of the system. */
  caFile?: string | undefined;
  /** File with the token of the worker's service account. A kubelet replaces it about every hour. */
  tokenFile?: string | undefined;
}

/** Age from which the files are read again. A token is replaced when a fifth of its life is left. */
const READ_AGAIN_MS = 60_000;

/** The connections to one API server, with the token and certificates that are in the files at present. */
export class Credentials {
  readonly #settings: ApiSettings;
  #readAt: number | undefined;
  #ca: string | undefined;
  #token: string | undefined;
  #agent = new Agent({ keepAlive: true });

  constructor(settings: ApiSettings) {
    this.#settings = settings;
  }

  /** Returns the parts of a request. Throws ApiUnreachable when a file cannot be read. */
  async use(): Promise<{ agent: Agent; headers: Record<string, string> }> {
    if (this.#readAt === undefined || performance.now() - this.#readAt >= READ_AGAIN_MS) await this.#read();
    return { agent: this.#agent, headers: this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` } };
  }

  /** Has the files read again before the next request. */
  expire(): void {
    this.#readAt = undefined;
  }

  close(): void {
    this.#agent.destroy();
  }

  async #read(): Promise<void> {
    const { caFile, tokenFile } = this.#settings;
    const [ca, token] = await Promise.all([caFile && readText(caFile), tokenFile && readText(tokenFile)]);
    this.#readAt = performance.now();
    this.#token = token?.trim();
    if (ca === this.#ca) return;
    this.#ca = ca;
    // The requests under way keep the connections of the previous agent, which closes the idle ones.
    this.#agent = new Agent({ keepAlive: true, ...(ca === undefined ? {} : { ca }) });
  }
}

async function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((cause: unknown) => {
    throw new ApiUnreachable(`${path} cannot be read: ${(cause as Error).message}`, { cause });
  });
}
