import type { FleetKeys, SessionKeys } from '@shellfleet/protocol';

declare const built: unique symbol;

/** Where a sealed value is stored: the additional data of its encryption, so a copy elsewhere cannot be opened. Built by `sealPlace` only. */
export interface SealPlace {
  readonly namespace: string;
  readonly tenant: string;
  /** the session's id, or the tool's name */
  readonly session: string;
  /** entry id, question id, call id, `<terminal>.<message number>`, or empty for the session itself */
  readonly entry: string;
  readonly kind: EntryKind | TerminalKind | ToolKind | 'spec';
  readonly [built]: true;
}

type EntryKind = 'payload' | 'answer' | 'input';
type TerminalKind = 'terminal-input' | 'terminal-output';
type ToolKind = 'tool-args' | 'tool-result';
type SessionPlace = Pick<SessionKeys, 'namespace' | 'tenant' | 'session'>;

/**
 * The place of a value that is sealed or opened. Its sealer and its opener call this with equal arguments.
 *
 *     sealer.seal(JSON.stringify(payload), sealPlace('payload', keys, entryId));
 */
export function sealPlace(kind: 'spec', session: SessionPlace): SealPlace;
/** `entry`: the id of the entry, or of the question that an answer belongs to. */
export function sealPlace(kind: EntryKind, session: SessionPlace, entry: string): SealPlace;
export function sealPlace(
  kind: TerminalKind,
  session: SessionPlace,
  message: { terminal: string; number: number },
): SealPlace;
export function sealPlace(
  kind: ToolKind,
  fleet: Pick<FleetKeys, 'namespace'>,
  call: { tenant: string; name: string; id: string },
): SealPlace;
export function sealPlace(
  kind: SealPlace['kind'],
  of: SessionPlace | Pick<FleetKeys, 'namespace'>,
  what: string | { terminal: string; number: number } | { tenant: string; name: string; id: string } = '',
): SealPlace {
  const { namespace } = of;
  if (typeof what === 'object' && 'name' in what)
    return place({ namespace, tenant: what.tenant, session: what.name, entry: what.id, kind });
  const { tenant, session } = of as SessionPlace;
  const entry = typeof what === 'string' ? what : `${what.terminal}.${what.number}`;
  return place({ namespace, tenant, session, entry, kind });
}

function place(fields: Omit<SealPlace, typeof built>): SealPlace {
  return fields as SealPlace;
}
