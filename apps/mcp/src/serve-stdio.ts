import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { withResolvers } from '@shellfleet/concurrency';
import { StdioConnection, type StdioIdentity } from './connections/stdio-connection.ts';
import { createMcpServer } from './server/create-server.ts';
import type { McpSettings } from './settings.ts';

/** The largest message of a client, in bytes: a file of `write_file` in base64, above all. */
const MESSAGE_BYTES = 16 * 2 ** 20;

/**
 * Serves MCP on stdin and stdout until the client closes stdin or the signal aborts. Commands that run then continue.
 */
export async function serveMcpOverStdio(
  settings: McpSettings,
  identity: StdioIdentity,
  signal: AbortSignal,
): Promise<void> {
  await using connection = new StdioConnection(settings, identity);
  const transport = new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: MESSAGE_BYTES });
  const ended = withResolvers<void>();
  const onerror = (error: Error) => settings.log(`The client sent what is not MCP: ${error.message}`);
  const handle = serveStdio(({ era }) => createMcpServer(connection, era), { transport, onerror });
  const close = transport.onclose;
  transport.onclose = () => {
    close?.();
    ended.resolve();
  };
  signal.addEventListener('abort', () => ended.resolve(), { once: true });
  await ended.promise;
  await handle.close();
}
