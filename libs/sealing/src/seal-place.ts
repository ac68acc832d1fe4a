import type { AuditChainName, FleetKeys, ResolvedSessionSpec, SessionKeys } from '@shellfleet/protocol';

declare const built: unique symbol;

/** Place where a sealed value is stored. The place is authenticated with the value, so the value opens nowhere else. */
export interface SealPlace {
  readonly namespace: string;
  readonly tenant: string;
  readonly session: string;
  /**
   * Id of the entry, question, file operation, call, batch or API key, `<terminal>.<message number>`, or empty for the
   * session.
   */
  readonly entry: string;
  readonly kind:
    | 'spec'
    | 'close'
    | 'payload'
    | 'file'
    | EntryKind
    | TerminalKind
    | ToolKind
    | ApprovalKind
    | BatchKind
    | 'audit-records'
    | 'api-key';
  /**
   * Plain fields that are stored next to the value and fixed when it is sealed: the generation, and how an entry runs.
   */
  readonly beside: readonly string[];
  /** Spec of the session, if a signature covers the spec. */
  readonly spec?: ResolvedSessionSpec;
  readonly [built]: true;
}

/** Kinds of an entry. `reason`: why a host holds or denies it. `error`: why its shell did not open. */
type EntryKind = 'reply' | 'input' | 'first-attempt' | 'reason' | 'error' | RequestKind;
/** Requests of a producer to the host of its entry: to stop it, and to end its stdin. */
type RequestKind = 'cancel' | 'input-end';
type TerminalKind = 'terminal-input' | 'terminal-output';
type ToolKind = 'tool-args' | 'tool-cancel' | 'tool-result';
/** Kinds that belong to a tenant. Their `entry` is the id of the question. */
type ApprovalKind = 'approval-question' | 'approval-grant' | 'approval-answer';
/**
 * Kinds of a detached batch: its options, a piece of its tasks, of a file or of its results, an output, its manifest,
 * and why it failed as a whole.
 */
type BatchKind =
  | 'batch-head'
  | 'batch-tasks'
  | 'batch-file'
  | 'batch-results'
  | 'batch-output'
  | 'batch-manifest'
  | 'batch-failure';
/** Place of a payload. The payload runs only in its own generation, and in the way that its submitter asked for. */
interface PayloadPlace {
  id: string;
  generation: string;
  retry: string;
  inbox: string;
  /** Spec of the session, where a signature covers it. */
  spec?: ResolvedSessionSpec;
}
type SessionPlace = Pick<SessionKeys, 'namespace' | 'tenant' | 'session'>;

/**
 * Returns the place of a sealed value. The sealer and the opener call this with equal arguments.
 *
 *     sealer.seal(JSON.stringify(payload), sealPlace('input', keys, entryId));
 */
export function sealPlace(kind: 'spec' | 'close', session: SessionPlace, of: { generation: string }): SealPlace;
export function sealPlace(kind: 'payload', session: SessionPlace, entry: PayloadPlace): SealPlace;
/** Returns the place of a step of a file operation outside the mailbox. */
export function sealPlace(
  kind: 'file',
  session: SessionPlace,
  step: { operation: string; generation: string; spec?: ResolvedSessionSpec },
): SealPlace;
/**
 * Returns the place of a value of an entry. `entry` is the id of the entry, or for an answer the id of the question.
 */
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
/**
 * Returns the place of a value of an approval. `id` is the id of the question. It is empty for an answer, which
 * contains the id of its question.
 */
export function sealPlace(
  kind: ApprovalKind,
  tenant: Pick<SessionKeys, 'namespace' | 'tenant'>,
  question: { question: string },
): SealPlace;
/**
 * Returns the place of a value of a detached batch. `id` is the id of its submission, and `part` names the value among
 * those of its kind.
 */
export function sealPlace(
  kind: BatchKind,
  tenant: Pick<SessionKeys, 'namespace' | 'tenant'>,
  batch: { batch: string; id: string; part: string },
): SealPlace;
/** Returns the place of records of an audit in Redis. `first` is the number of the first one. */
export function sealPlace(
  kind: 'audit-records',
  fleet: Pick<FleetKeys, 'namespace'>,
  records: { chain: AuditChainName; first: number },
): SealPlace;
/** Returns the place of an API key. `id` is the id of the key. */
export function sealPlace(kind: 'api-key', fleet: Pick<FleetKeys, 'namespace'>, key: { apiKey: string }): SealPlace;
export function sealPlace(
  kind: SealPlace['kind'],
  of: SessionPlace | Pick<SessionKeys, 'namespace' | 'tenant'> | Pick<FleetKeys, 'namespace'>,
  what: string | Placed,
): SealPlace {
  const { namespace } = of;
  if (typeof what === 'object' && 'chain' in what) {
    const { host, boot, tenant } = what.chain;
    return place({ namespace, tenant, session: '', entry: String(what.first), kind, beside: [host, boot] });
  }
  if (typeof what === 'object' && 'apiKey' in what)
    return place({ namespace, tenant: '', session: '', entry: what.apiKey, kind, beside: [] });
  if (typeof what === 'object' && 'question' in what) {
    const { tenant } = of as SessionPlace;
    return place({ namespace, tenant, session: '', entry: what.question, kind, beside: [] });
  }
  if (typeof what === 'object' && 'batch' in what) {
    const { tenant } = of as SessionPlace;
    return place({ namespace, tenant, session: `batch/${what.batch}`, entry: what.id, kind, beside: [what.part] });
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
  | { question: string }
  | { batch: string; id: string; part: string }
  | { chain: AuditChainName; first: number }
  | { apiKey: string };

function place(fields: Omit<SealPlace, typeof built>): SealPlace {
  return fields as SealPlace;
}
