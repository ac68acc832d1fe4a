import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ATTRIBUTES, LIMITS } from '@shellfleet/protocol';
import type { Logger } from '../log/logger.ts';
import type { DescribedTool } from './child/request.ts';
import { startProcess } from './start-process.ts';
import { runToolProcess, type ToolProcessEnd } from './tool-process.ts';

export interface Tool extends DescribedTool {
  module: string;
  /** Memory that the runtime itself uses, before the module is loaded. Equal for all tools of a host. */
  dataBytes: number;
  /** URL of the zod package that the module imports. Undefined when its directory has none. */
  zod: string | undefined;
}

/** Time in which a module must report its tools. Otherwise the module counts as broken. */
const DESCRIBE_WITHIN_MS = 15_000;
/** Memory limit for the description of a module. */
const DESCRIBE_MEMORY_BYTES = 2 * 1024 * 1024 * 1024;

/** Describes each module in a separate process. Leaves out broken modules and tools with equal names, and logs them. */
export async function loadTools(
  modules: readonly string[],
  env: Record<string, string>,
  mark: string,
  logger: Logger,
): Promise<Tool[]> {
  if (modules.length === 0) return [];
  if (process.platform !== 'linux') {
    logger.error(
      { platform: process.platform, reason: 'tool calls need Linux, whose kernel limits and ends their processes' },
      'tools.refused',
    );
    return [];
  }
  const found: Tool[] = [];
  for (const described of await Promise.all(modules.map((module) => describe(module, env, mark)))) {
    if ('refused' in described)
      logger.error({ module: described.module, reason: described.refused }, 'tools.module-refused');
    else found.push(...described.tools);
  }
  const byName = new Map<string, Tool[]>();
  for (const tool of found) byName.set(tool.name, [...(byName.get(tool.name) ?? []), tool]);
  for (const [name, alike] of byName) {
    if (alike.length === 1) continue;
    logger.error(
      { [ATTRIBUTES.toolName]: name, modules: alike.map(({ module }) => module) },
      'tools.duplicate-refused',
    );
    byName.delete(name);
  }
  const tools = [...byName.values()].flat();
  const dataBytes = Math.max(...tools.map((tool) => tool.dataBytes));
  return tools.map((tool) => ({ ...tool, dataBytes }));
}

async function describe(
  module: string,
  env: Record<string, string>,
  mark: string,
): Promise<{ tools: Tool[] } | { module: string; refused: string }> {
  const limits = { memoryBytes: DESCRIBE_MEMORY_BYTES, dataBytes: DESCRIBE_MEMORY_BYTES };
  // The mark is unique, because all processes with the mark of a call end with that call.
  const started = startProcess({ ...limits, env, mark: `${mark}${randomUUID()}` });
  const end = await runToolProcess(started, {
    request: { type: 'describe', module },
    timeoutMs: DESCRIBE_WITHIN_MS,
    outputBytes: LIMITS.toolOutputBytes,
    signal: new AbortController().signal,
  });
  if (end.type === 'reported' && end.report.type === 'described') {
    const { tools, dataBytes } = end.report;
    return { tools: tools.map((tool) => ({ ...tool, module, dataBytes, zod: zodOf(module) })) };
  }
  return { module, refused: reasonOf(end) };
}

function zodOf(module: string): string | undefined {
  const require = createRequire(module);
  try {
    const manifest = require.resolve('zod/package.json');
    return pathToFileURL(join(dirname(manifest), require(manifest).module)).href;
  } catch {
    return undefined;
  }
}

function reasonOf(end: ToolProcessEnd): string {
  if (end.type === 'reported') {
    if (end.report.type === 'refused') return end.report.message;
    return end.report.type === 'failed' ? end.report.error.message : 'its process answered something else';
  }
  if (end.type === 'timeout') return `it did not load within ${DESCRIBE_WITHIN_MS} ms`;
  const how = end.type === 'died' ? (end.signal ?? `exit code ${end.exitCode}`) : end.type;
  return `its process ended without an answer (${how}): ${end.stderr.trim().split('\n').at(-1)}`;
}
