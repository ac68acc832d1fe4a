import type { FleetKeys, ResolvedSessionSpec, SessionKeys } from '@shellfleet/protocol';

declare const built: unique symbol;

/** Where a sealed value is stored: the additional data of its encryption, so a copy elsewhere cannot be opened. Built by `sealPlace` only. */
export interface SealPlace {
  readonly namespace: string;
  readonly tenant: string;
  /** the session's id, or the tool's name */
  readonly session: string;
  /** entry id, question id, id of a file operation, call id, `<terminal>.<message number>`, or empty for the session itself */
  readonly entry: string;
  readonly kind: 'spec' | 'close' | 'payload' | 'file' | EntryKind | TerminalKind | ToolKind | ApprovalKind;
  /** What else stands in clear beside the value and must be as its sealer had it: the generation, and how an entry runs. */
  readonly beside: readonly string[];
  /** Of the session, where a signature covers it. */
  readonly spec?: ResolvedSessionSpec;
  readonly [built]: true;
}

/** `reason`: why a host holds or denies an entry, which may quote its script. `error`: of a shell that could not be opened, which may quote the spec. */
type EntryKind = 'answer' | 'input' | 'first-attempt' | 'reason' | 'error' | RequestKind;
/** What a producer asks of the host that runs its entry: to stop it, and that its stdin ends here. */
type RequestKind = 'cancel' | 'input-end';
type TerminalKind = 'terminal-input' | 'terminal-output';
type ToolKind = 'tool-args' | 'tool-cancel' | 'tool-result';
/** They belong to a tenant. The entry is the id of the question. */
type ApprovalKind = 'approval-question' | 'approval-grant' | 'approval-answer';
/** A payload runs in its own generation only, and only as its submitter asked. */
interface PayloadPlace {
  id: string;
  generation: string;
  retry: string;
  inbox: string;
  /** Of the session: a signature covers it. */
  spec?: ResolvedSessionSpec;
}
type SessionPlace = Pick<SessionKeys, 'namespace' | 'tenant' | 'session'>;

/**
 * The place of a value that is sealed or opened. Its sealer and its opener call this with equal arguments.
 *
 *     sealer.seal(JSON.stringify(payload), sealPlace('input', keys, entryId));
 */
/** `close`: the end of this generation. */
export function sealPlace(kind: 'spec' | 'close', session: SessionPlace, of: { generation: string }): SealPlace;
export function sealPlace(kind: 'payload', session: SessionPlace, entry: PayloadPlace): SealPlace;
/** A step of a file operation beside the mailbox. */
export function sealPlace(
  kind: 'file',
  session: SessionPlace,
  step: { operation: string; generation: string; spec?: ResolvedSessionSpec },
): SealPlace;
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
/** `id`: of the question; of an answer, which names its question inside, empty. */
export function sealPlace(
  kind: ApprovalKind,
  tenant: Pick<SessionKeys, 'namespace' | 'tenant'>,
  question: { question: string },
): SealPlace;
export function sealPlace(
  kind: SealPlace['kind'],
  of: SessionPlace | Pick<SessionKeys, 'namespace' | 'tenant'> | Pick<FleetKeys, 'namespace'>,
  what: string | Placed,
): SealPlace {
  const { namespace } = of;
  if (typeof what === 'object' && 'question' in what) {
    const { tenant } = of as SessionPlace;
    return place({ namespace, tenant, session: '', entry: what.question, kind, beside: [] });
  }
  if (typeof what === 'object' && 'name' in what)
    return place({ namespace, tenant: what.tenant, session: what.name, entry: what.id, kind, beside: [] });
  const { tenant, session } = of as SessionPlace;
  const within = { namespace, tenant, session, kind };
  if (typeof what === 'string') return place({ ...within, entry: what, beside: [] });
  const signed = 'spec' in what && what.spec !== undefined ? { spec: what.spec } : {};
  if ('operation' in what) return place({ ...within, ...signed, entry: what.operation, beside: [what.generation] });
  if ('number' in what) return place({ ...within, entry: `${what.terminal}.${what.number}`, beside: [] });
  if ('retry' in what)
    return place({ ...within, ...signed, entry: what.id, beside: [what.generation, what.retry, what.inbox] });
  return place({ ...within, entry: '', beside: [what.generation] });
}

type Placed =
  | { generation: string }
  | { operation: string; generation: string; spec?: ResolvedSessionSpec }
  | PayloadPlace
  | { terminal: string; number: number }
  | { tenant: string; name: string; id: string }
  | { question: string };

function place(fields: Omit<SealPlace, typeof built>): SealPlace {
  return fields as SealPlace;
}
