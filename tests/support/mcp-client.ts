import { Client, type ClientOptions } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { inject } from 'vitest';
import type { TestFleet } from './start-fleet.ts';

export interface Connecting {
  args?: string[];
  env?: Record<string, string>;
  options?: ClientOptions;
}

/** Starts an MCP server of the fleet as a client does, and connects to it. */
export async function connectOverStdio(
  fleet: Pick<TestFleet, 'redisUrl' | 'namespace' | 'sealKey'>,
  { args = [], env = {}, options }: Connecting,
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' }, options);
  const environment = {
    PATH: process.env.PATH ?? '',
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
    SHELLFLEET_REDIS_URL: fleet.redisUrl,
    SHELLFLEET_NAMESPACE: fleet.namespace,
    SHELLFLEET_SEAL_KEY: fleet.sealKey,
    SHELLFLEET_STATE_DIR: '/nonexistent',
  };
  const words = ['--no-warnings', inject('programs').cli, 'mcp', ...args];
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: words, env: { ...environment, ...env } }),
  );
  return client;
}

/** A client of the protocol of 2026, in which a server returns what it asks, and the client repeats its call. */
export const modern: ClientOptions = { versionNegotiation: { mode: { pin: '2026-07-28' } } };

type Structured = Record<string, unknown>;

/** Calls a tool. Returns its data, its text, and our code if it failed. */
export async function call(client: Client, name: string, args: Structured = {}, options = {}) {
  const result = await client.callTool({ name, arguments: args }, options);
  const [content] = result.content;
  return {
    data: (result.structuredContent ?? {}) as Structured,
    text: content?.type === 'text' ? content.text : '',
    isError: result.isError ?? false,
    code: (result._meta?.['shellfleet/error'] as { code?: string } | undefined)?.code,
  };
}
