import type { Entry } from '@shellfleet/mailbox';
import type { AuditEvent, Caller, EntryPayload, ResolvedSessionSpec, WireResult } from '@shellfleet/protocol';

// Events of entries. The session's secrets and rules redact every text in them.

/** Most characters of a script. Longer scripts are cut after their redaction. */
const SCRIPT_CHARACTERS = 16_384;

interface Redaction {
  text(text: string): string;
  value<T>(value: T): T;
}

export interface AuditedEntry {
  session: string;
  generation: string;
  entry: string;
}

/** Who submitted an entry: the caller that its client named, and the owner of the key that signed it. */
export interface Submitter {
  submittedBy?: Caller | undefined;
  producer?: string | undefined;
}

export function submissionEvent(
  about: AuditedEntry,
  { acceptedAt }: Pick<Entry, 'acceptedAt'>,
  payload: EntryPayload,
  spec: ResolvedSessionSpec,
  redaction: Redaction,
  { submittedBy, producer }: Submitter,
): AuditEvent {
  const { policy, image } = spec;
  return {
    type: 'submission',
    ...about,
    kind: payload.type,
    acceptedAt: new Date(acceptedAt).toISOString(),
    policy: policy.type,
    ...(image === undefined ? {} : { image: redactedImageOf(spec, image, redaction) }),
    ...contentOf(payload, redaction),
    ...(submittedBy === undefined ? {} : { submittedBy }),
    ...(producer === undefined ? {} : { producer }),
  };
}

/** Redacted names of images, by spec. A spec belongs to one session, whose redaction does not change. */
const images = new WeakMap<ResolvedSessionSpec, string>();

function redactedImageOf(spec: ResolvedSessionSpec, image: string, redaction: Pick<Redaction, 'text'>): string {
  const redacted = images.get(spec) ?? redaction.text(image);
  images.set(spec, redacted);
  return redacted;
}

function contentOf(payload: EntryPayload, redaction: Pick<Redaction, 'text'>) {
  if (payload.type === 'restart') return {};
  if (payload.type === 'file')
    return { operation: payload.operation.name, path: redaction.text(payload.operation.path) };
  const script = redaction.text(payload.script);
  const scriptOmitted = Math.max(0, script.length - SCRIPT_CHARACTERS);
  return { script: script.slice(0, SCRIPT_CHARACTERS), ...(scriptOmitted === 0 ? {} : { scriptOmitted }) };
}

export function endEvent(about: AuditedEntry, result: WireResult, redaction: Pick<Redaction, 'text'>): AuditEvent {
  const { totals, redactions, timings } = result;
  return {
    type: 'end',
    ...about,
    outcome: result.outcome,
    exitCode: result.exitCode,
    ...reasonOf(result, redaction),
    ...(result.outcome === 'error' ? { error: result.error.code } : {}),
    stdoutBytes: totals.stdoutBytes,
    stderrBytes: totals.stderrBytes,
    redactions: Object.values(redactions).reduce((sum, count) => sum + count, 0),
    runMs: timings.runMs,
  };
}

/** Returns the reason of a Result: the redacted text of an error, or one of Shellfleet's fixed words. */
function reasonOf({ outcome, reason }: WireResult, redaction: Pick<Redaction, 'text'>): { reason?: string } {
  if (reason === undefined) return {};
  return { reason: outcome === 'error' ? redaction.text(reason) : reason };
}
