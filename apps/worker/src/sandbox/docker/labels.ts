import { z } from 'zod';
import type { SandboxTransport, SessionRef } from '../sandbox.ts';

// What a container says about itself. Ids only: labels are readable by everyone who may look at the engine.

const PREFIX = 'shellfleet.';

export interface SandboxLabels {
  session: SessionRef;
  hostId: string;
  sandboxId: string;
  transport: SandboxTransport;
  protocolVersion: number;
}

const schema = z.object({
  namespace: z.string().min(1),
  tenant: z.string().min(1),
  session: z.string().min(1),
  host: z.string().min(1),
  sandbox: z.string().regex(/^[0-9a-f]{12}$/),
  transport: z.enum(['socket', 'attach']),
  protocol: z.string().regex(/^[0-9]{1,6}$/),
});

export function toLabels(labels: SandboxLabels): Record<string, string> {
  const { session, hostId, sandboxId, transport, protocolVersion } = labels;
  const values = { ...session, host: hostId, sandbox: sandboxId, transport, protocol: String(protocolVersion) };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [PREFIX + name, value]));
}

/** Undefined for a container that is not one of ours, whatever it calls itself. */
export function parseLabels(labels: Record<string, string>): SandboxLabels | undefined {
  const ours = Object.entries(labels).filter(([name]) => name.startsWith(PREFIX));
  const values = schema.safeParse(
    Object.fromEntries(ours.map(([name, value]) => [name.slice(PREFIX.length), value])),
  ).data;
  if (!values) return undefined;
  const { namespace, tenant, session, host: hostId, sandbox: sandboxId, transport, protocol } = values;
  return { session: { namespace, tenant, session }, hostId, sandboxId, transport, protocolVersion: Number(protocol) };
}

/** As the engine's list and events filter by them. */
export function hostFilter(namespace: string, hostId: string): string[] {
  return [`${PREFIX}namespace=${namespace}`, `${PREFIX}host=${hostId}`];
}
