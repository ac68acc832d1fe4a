import { McpServer, type ProtocolEra } from '@modelcontextprotocol/server';
import { ShellfleetError } from '@shellfleet/protocol';
import { Person } from '../approvals/person.ts';
import type { McpConnection } from '../connections/connection.ts';
import { addFileResources } from '../files/file-resources.ts';
import { ALL_TOOLS } from '../tools/all-tools.ts';
import type { OpenCall } from '../tools/define-tool.ts';
import { progressOf } from '../tools/tool-call.ts';
import { INSTRUCTIONS } from './instructions.ts';
import { addPrompts } from './prompts.ts';

/** Creates a server for one connection, or for one request over HTTP. It connects to the fleet at the first call. */
export function createMcpServer(connection: McpConnection, era: ProtocolEra): McpServer {
  const { settings, defaultSession } = connection;
  const server = new McpServer(
    { name: 'shellfleet', title: 'Shellfleet', version: settings.version },
    { capabilities: { tools: {}, resources: {}, prompts: {} }, instructions: INSTRUCTIONS },
  );
  const open: OpenCall = async (context, scope) => {
    const deadline = Date.now() + settings.answerWithinMs;
    const opened = await connection.open();
    if (!opened.scopes.has(scope)) throw lacks(scope);
    const commandId = context.mcpReq.requestState<string>();
    // The state comes from the client, which could name any command of the tenant, and gets its output.
    if (commandId !== undefined && !opened.scopes.has('read')) throw lacks('read');
    return {
      ...opened,
      ...{ settings, defaultSession, deadline, signal: context.mcpReq.signal },
      ...progressOf(context),
      commandId,
      person: new Person(opened, server, era, context),
    };
  };
  for (const add of ALL_TOOLS) add(server, open, settings.log);
  addFileResources(server, open);
  addPrompts(server);
  return server;
}

function lacks(scope: string): ShellfleetError {
  return new ShellfleetError('UNAUTHORIZED', `The key of this MCP server lacks the scope ${scope}.`, { scope });
}
