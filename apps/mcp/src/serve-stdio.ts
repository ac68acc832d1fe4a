import { pipeline } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { MessageLines } from './connections/message-lines.ts';
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
  const lines = new MessageLines(MESSAGE_BYTES, (refusal) => {
    settings.log(`The client gets error ${refusal.error.code}. ${refusal.error.message}`);
    process.stdout.write(`${JSON.stringify(refusal)}\n`);
  });
  // The transport reports how the lines end.
  pipeline(process.stdin, lines, () => {});
  const transport = new StdioServerTransport(lines, process.stdout, { maxBufferSize: MESSAGE_BYTES });
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
  // Ends the reading of stdin, which would keep the process alive.
  lines.destroy();
}
