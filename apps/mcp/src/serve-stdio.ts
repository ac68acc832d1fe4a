import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { StdioConnection, type StdioIdentity } from './connections/stdio-connection.ts';
import { createMcpServer } from './server/create-server.ts';
import { inShort, type McpSettings, MESSAGE_BYTES } from './settings.ts';

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
  const ended = Promise.withResolvers<void>();
  const onerror = (error: Error) => settings.log(`The connection failed, or a message was no MCP: ${inShort(error)}`);
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
