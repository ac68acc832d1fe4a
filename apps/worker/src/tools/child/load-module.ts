import type { ToolDefinition } from '@shellfleet/protocol';

const { pathToFileURL } = process.getBuiltinModule('node:url');

export async function loadModule(path: string): Promise<Map<string, ToolDefinition>> {
  const exports: Record<string, unknown> = await import(pathToFileURL(path).href);
  return new Map(Object.entries(exports).filter((entry): entry is [string, ToolDefinition] => isTool(entry[1])));
}

function isTool(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'input' in value && 'run' in value;
}
