import { NO_LIVE_HOST } from '@shellfleet/placement';
import { isShellfleetError } from '@shellfleet/protocol';
import { listHosts } from '../hosts/list-hosts.ts';
import { listTools } from './list-tools.ts';
import type { ToolCallContext } from './tool-context.ts';

/** Why a tool call has not started yet. */
export interface ToolWait {
  /**
   * Kind of the reason. `no-host`: no live host can take the call. `busy`: all hosts that offer the tool are busy.
   * `redis`: Redis does not reply.
   */
  because: 'no-host' | 'busy' | 'redis';
  /** The reason as a sentence. */
  message: string;
}

/** Returns the reason why no host has taken a call from the queue of its tool. */
export async function whyCallWaits(context: ToolCallContext, name: string): Promise<ToolWait> {
  try {
    return await readReason(context, name);
  } catch (error) {
    if (!isShellfleetError(error) || error.code !== 'QUEUE_UNAVAILABLE') throw error;
    return { because: 'redis', message: error.message };
  }
}

async function readReason(context: ToolCallContext, name: string): Promise<ToolWait> {
  const [hosts, tools] = await Promise.all([listHosts(context), listTools(context)]);
  const alive = hosts.filter(({ state }) => state !== 'unreachable');
  // When no host is alive, the caller is most often connected to the wrong fleet.
  if (alive.length === 0)
    return { because: 'no-host', message: `${NO_LIVE_HOST} It is looked for in ${context.place}` };
  const offering = tools.find((tool) => tool.name === name)?.hosts ?? [];
  const able = alive.filter(({ id }) => offering.includes(id));
  if (able.length === 0) {
    const setting = 'The operator of a host lists the modules of its tools in SHELLFLEET_TOOLS.';
    return { because: 'no-host', message: `No live host offers the tool '${name}'. ${setting}` };
  }
  const taking = able.filter(({ state }) => state === 'up').map(({ id }) => id);
  if (taking.length === 0)
    return { because: 'no-host', message: `Every live host that offers the tool '${name}' is draining.` };
  return { because: 'busy', message: `Every host that offers the tool '${name}' is busy (${taking.join(', ')}).` };
}
