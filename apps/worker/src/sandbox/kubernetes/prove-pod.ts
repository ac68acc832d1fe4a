import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type Examination, MOST_PROBES, type ProbeResult } from '@shellfleet/keeper';
import type { KubernetesPlan } from '@shellfleet/policy';
import { ShellfleetError } from '@shellfleet/protocol';
import { judgeExamination } from './judge.ts';

// A cluster accepts what it does not enforce, so a Pod has to prove its plan before anything runs in it. Many networks
// apply their policies to a Pod only seconds after its containers have begun.

type Examine = (probes: readonly string[]) => Promise<Examination>;
type Resolve = (name: string) => Promise<string[]>;

/** Metadata services of clouds. A node has its own credentials from there. */
const METADATA = ['169.254.169.254:80', '168.63.129.16:80'];
/** Times for a network to apply its policies to a new Pod. */
const PATIENCE = { everyMs: 500, withinMs: 10_000 };

export interface PodProof {
  name: string;
  plan: Pick<KubernetesPlan, 'limits' | 'cluster' | 'network'>;
  /** URL of the API server. */
  server: string;
  /** `host:port` of what the operator wants out of reach of every Pod. */
  probes: readonly string[];
  /** `host:port` of the keeper of another Pod, if there is one. */
  neighbour: string | undefined;
}

/**
 * Throws SANDBOX_UNAVAILABLE with everything that falls short of the plan. Addresses that the Pod reaches are tried
 * again for some seconds, if nothing else falls short.
 */
export async function provePod(
  of: PodProof,
  examine: Examine,
  { resolve = resolveAll, patience = PATIENCE }: { resolve?: Resolve; patience?: typeof PATIENCE } = {},
): Promise<void> {
  const { limits, cluster, network } = of.plan;
  const { unenforced, userNamespaces, podPidsLimit } = cluster;
  const metadata = network === 'full' ? [] : METADATA;
  const neighbours = of.neighbour === undefined ? [] : [of.neighbour];
  const places = [placeOf(of.server), ...metadata, ...of.probes, ...neighbours];
  // Without a result that counts, no Pod has to wait for addresses that do not answer.
  const probes = unenforced.includes('network') ? [] : await toAddresses(places, resolve);
  const { memoryBytes, pids } = limits;
  const expected = { memoryBytes, pids, podPidsLimit, userNamespaces, probes, unenforced };
  let found = await examineAll(probes, examine);
  let issues = judgeExamination(found, expected);
  const end = performance.now() + patience.withinMs;
  for (;;) {
    const reached = probes.filter((address) => found.probes.get(address) === 'connected');
    if (reached.length === 0 || reached.length < issues.length || performance.now() >= end) break;
    await delay(patience.everyMs);
    const again = await examineAll(reached, examine);
    found = { ...found, probes: new Map([...found.probes, ...again.probes]) };
    issues = judgeExamination(found, expected);
  }
  if (issues.length === 0) return;
  const list = issues.map(({ path, message }) => `${path}: ${message}`).join('; ');
  throw new ShellfleetError('SANDBOX_UNAVAILABLE', `The Pod ${of.name} lacks what its session needs. ${list}.`, {
    issues,
  });
}

/** Examines the Pod once for every MOST_PROBES addresses, and joins the results. */
async function examineAll(addresses: readonly string[], examine: Examine): Promise<Examination> {
  const found = await examine(addresses.slice(0, MOST_PROBES));
  const probes = new Map<string, ProbeResult>(found.probes);
  for (let at = MOST_PROBES; at < addresses.length; at += MOST_PROBES)
    for (const [address, result] of (await examine(addresses.slice(at, at + MOST_PROBES))).probes)
      probes.set(address, result);
  return { ...found, probes };
}

/** Returns `host:port` of an https URL. */
function placeOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || '443'}`;
}

export function toPlace(address: string, port: number | string): string {
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Returns every address of the places. A name without one stays, and no keeper can try it. */
async function toAddresses(places: readonly string[], resolve: Resolve): Promise<string[]> {
  const all = places.map(async (place) => {
    const colon = place.lastIndexOf(':');
    const [host, port] = [place.slice(0, colon), place.slice(colon + 1)];
    if (isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0) return [place];
    const found = await resolve(host).catch(() => [host]);
    return found.map((address) => toPlace(address, port));
  });
  return [...new Set((await Promise.all(all)).flat())];
}

async function resolveAll(name: string): Promise<string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}
