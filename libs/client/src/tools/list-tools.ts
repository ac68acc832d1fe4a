import { hostKeys, parseOrThrow, type ToolInfo, type ToolOffer, toolOfferSchema } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import { z } from 'zod';
import type { FleetContext } from '../connection/fleet-context.ts';

const offersSchema = z.array(toolOfferSchema);

/** Which tools are listed. */
export interface ToolFilter {
  /**
   * Text in the name or description, in any case.
   * @default all
   */
  query?: string | undefined;
}

const filterSchema = z.strictObject({ query: z.string('must be a string').optional() });

/**
 * Returns the tools of live hosts, by name. If hosts define a tool differently, the definition of the first host is
 * returned.
 */
export async function listTools(context: FleetContext, filter: ToolFilter = {}): Promise<ToolInfo[]> {
  const { query = '' } = parseOrThrow(filterSchema, filter, 'COMMAND_INVALID', 'The filter');
  const tools = new Map<string, { offer: ToolOffer; text: string; hosts: string[]; differing: string[] }>();
  for (const { host, offers } of await readOffers(context)) {
    for (const offer of offers) {
      const text = JSON.stringify(offer);
      const known = tools.get(offer.name);
      if (known === undefined) tools.set(offer.name, { offer, text, hosts: [host], differing: [] });
      else {
        known.hosts.push(host);
        if (known.text !== text) known.differing.push(host);
      }
    }
  }
  return [...tools.values()]
    .map(({ offer, hosts, differing }) => ({ ...offer, hosts, differing }))
    .filter(({ name, description = '' }) => [name, description].some((text) => contains(text, query)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

const contains = (text: string, query: string) => text.toLowerCase().includes(query.toLowerCase());

/** Reads the offers of each host. A draining host withdraws its offers before its last call has ended. */
async function readOffers({ redis, fleet, namespace }: FleetContext): Promise<{ host: string; offers: ToolOffer[] }[]> {
  try {
    const hosts = (await redis.zrange(fleet.hosts, '0', '-1')).sort();
    const texts = await Promise.all(hosts.map((host) => redis.get(hostKeys(namespace, host).tools)));
    return hosts.map((host, index) => ({ host, offers: parseOffers(texts[index] ?? null) }));
  } catch (error) {
    throw toQueueError(error);
  }
}

function parseOffers(text: string | null): ToolOffer[] {
  try {
    return offersSchema.parse(JSON.parse(text ?? '[]'));
  } catch {
    return [];
  }
}
