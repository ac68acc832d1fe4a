import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

describe('the configurations of MCP clients in the document', () => {
  test('name one program, or the address of a server for HTTP', () => {
    const page = readFileSync(new URL('../../../docs/mcp.md', import.meta.url), 'utf8');
    const fences = [...page.matchAll(/```(json|toml)\n([\s\S]*?)```/g)];
    const commands = fences.flatMap(([, language, text = '']) =>
      language === 'json' ? serversOf(JSON.parse(text)) : [tomlServer(text)],
    );
    const local = commands.filter(({ command }) => command !== undefined);
    expect(commands.flatMap(({ url }) => url ?? [])).toEqual(Array(2).fill('http://127.0.0.1:7411/mcp'));
    expect(local.map(({ command, args }) => [command, ...(args ?? [])].join(' '))).toEqual(
      Array(5).fill('npx -y shellfleet mcp'),
    );
  });
});

interface ServerConfiguration {
  command?: string;
  args?: string[];
  url?: string;
}

function serversOf(configuration: Record<string, Record<string, ServerConfiguration>>): ServerConfiguration[] {
  return Object.values(configuration).flatMap((servers) => Object.values(servers));
}

/** Reads the table of one server. Its values are JSON as well as TOML. */
function tomlServer(text: string): ServerConfiguration {
  expect(text).toMatch(/^\[mcp_servers\.shellfleet\]\n/);
  const pairs = [...text.matchAll(/^(\w+) = (.*)$/gm)].map(([, name = '', value = '']) => [name, JSON.parse(value)]);
  return Object.fromEntries(pairs);
}
