import type { AuditHead, AuditRecord } from '@shellfleet/protocol';
import { type AuditKey, CHAIN_START, parseAuditLine } from './audit-line.ts';

// VERIFY-1. Without a seal key, any change, addition, reordering or removal before the last record makes a finding.
// VERIFY-2. A head that was kept elsewhere (in Redis, or exported) reveals that records were removed at the end.
// VERIFY-3. A line that a crash left incomplete is not tampering if it is the last, or the next record reports it.

export interface AuditFinding {
  type:
    | 'altered'
    | 'missing'
    | 'misplaced'
    | 'cut-off'
    | 'torn'
    | 'lost'
    | 'unclosed'
    | 'removed-early'
    | 'unknown-key';
  /** File and line, or only the file. */
  where: string;
  message: string;
}

export interface VerifiedChain {
  records: number;
  head: AuditHead;
  findings: AuditFinding[];
}

const HARMLESS: readonly AuditFinding['type'][] = ['torn', 'lost', 'unclosed', 'removed-early'];

export interface AuditSegment {
  name: string;
  text: string;
}

export function isTampering({ type }: AuditFinding): boolean {
  return !HARMLESS.includes(type);
}

/**
 * Checks the files of a chain, in order, against `heads` that were kept elsewhere. Calls the callback with each
 * authentic record.
 */
export function verifyAudit(
  segments: Iterable<AuditSegment>,
  keys: readonly AuditKey[],
  heads: readonly AuditHead[],
  onRecord: (record: AuditRecord) => void = () => {},
): VerifiedChain {
  const chain = new AuditCheck(keys, heads, onRecord);
  for (const { name, text } of segments) {
    const lines = text.split('\n');
    const rest = lines.pop() ?? '';
    for (const [index, line] of lines.entries()) chain.read(line, `${name}:${index + 1}`);
    if (rest !== '') chain.readTorn(rest, `${name}:${lines.length + 1}`);
  }
  return chain.end();
}

/** Checks the records of one chain, which are read in their order. */
export class AuditCheck {
  readonly #keys: readonly AuditKey[];
  readonly #heads: readonly AuditHead[];
  readonly #onRecord: (record: AuditRecord) => void;
  readonly #findings: AuditFinding[] = [];
  /** Codes of the records whose heads were kept elsewhere. */
  readonly #kept = new Map<number, { mac: string; where: string }>();
  #records = 0;
  #head = CHAIN_START;
  #first: { n: number; where: string } | undefined;
  #prunedThrough = 0;
  #isClosed = false;
  /** Code of the record that was read last. */
  #last = '';
  /** Place of an unreadable line. The next record may report that a crash left the line incomplete. */
  #unread: { where: string; isLast: boolean } | undefined;

  constructor(
    keys: readonly AuditKey[],
    heads: readonly AuditHead[],
    onRecord: (record: AuditRecord) => void = () => {},
  ) {
    this.#keys = keys;
    this.#heads = heads;
    this.#onRecord = onRecord;
    for (const { n } of heads) this.#kept.set(n, { mac: '', where: '' });
  }

  /** True if the last record tells that the process of the chain ended in order. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Accepts that the records up to `through` were removed. */
  acceptRemoved(through: number): void {
    this.#prunedThrough = Math.max(this.#prunedThrough, through);
  }

  read(line: string, where: string): void {
    const parsed = parseAuditLine(line, this.#keys);
    if (parsed === undefined) {
      this.#endUnread();
      this.#unread = { where, isLast: false };
      return;
    }
    const { record, mac, authentic, keyKnown } = parsed;
    if (!keyKnown)
      this.#find('unknown-key', where, `record ${record.n} was made with the key ${record.key}, which is not given`);
    else if (!authentic) this.#find('altered', where, `record ${record.n} was altered`);
    if (this.#unread !== undefined && authentic && record.event.type === 'interrupted') {
      this.#find('torn', this.#unread.where, 'a crash or a full disk left this line incomplete');
      this.#unread = undefined;
    }
    this.#endUnread();
    this.#follow(record, mac, authentic, where);
  }

  /** Reads a last line without a line feed. */
  readTorn(line: string, where: string): void {
    if (parseAuditLine(line, this.#keys)?.authentic === true) {
      this.read(line, where);
      return;
    }
    this.#endUnread();
    this.#unread = { where, isLast: true };
  }

  end(): VerifiedChain {
    if (this.#unread?.isLast) {
      this.#find('torn', this.#unread.where, 'a crash or a full disk left this line incomplete');
      this.#unread = undefined;
    }
    this.#endUnread();
    const { n = 1, where = '' } = this.#first ?? {};
    const from = this.#prunedThrough + 1;
    if (n > from) this.#find('missing', where, `${rangeOf(from, n - 1)} missing`);
    for (const head of this.#heads) this.#compare(head, n);
    return { records: this.#records, head: this.#head, findings: this.#findings };
  }

  #follow(record: AuditRecord, mac: string, authentic: boolean, where: string): void {
    const { n, previous, event } = record;
    const before = this.#head;
    if (this.#first === undefined) this.#first = { n, where };
    else if (n > before.n + 1) this.#find('missing', where, `${rangeOf(before.n + 1, n - 1)} missing before it`);
    else if (n <= before.n) this.#find('altered', where, `record ${n} is in the wrong place, after record ${before.n}`);
    else if (authentic && previous !== before.mac)
      this.#find('altered', where, `record ${before.n} is not the one that record ${n} was written after`);
    this.#head = { n, mac };
    this.#last = where;
    if (!authentic) return;
    if (this.#kept.has(n)) this.#kept.set(n, { mac, where });
    this.#records += 1;
    this.#isClosed = event.type === 'closed';
    if (event.type === 'pruned') this.acceptRemoved(event.through);
    if (event.type === 'lost')
      this.#find('lost', where, `${event.count} records of starts and ends could not be written`);
    if (event.type === 'cut') this.#find('cut-off', where, describeCut(event));
    if (event.type === 'rewound')
      this.#find('cut-off', where, `Redis had lost ${spanOf(event.found + 1, event.through)}`);
    this.#onRecord(record);
  }

  #compare({ n, mac }: AuditHead, first: number): void {
    const { mac: found = '', where = '' } = this.#kept.get(n) ?? {};
    const newest = Math.max(this.#head.n, this.#prunedThrough);
    if (n > newest)
      this.#find('cut-off', this.#last, `${rangeOf(newest + 1, n)} cut off: a head of record ${n} was kept`);
    else if (n >= first && found !== mac && found !== '')
      this.#find('altered', where, `record ${n} is not the one whose head was kept`);
  }

  #endUnread(): void {
    if (this.#unread !== undefined) this.#find('altered', this.#unread.where, 'this line is no record any more');
    this.#unread = undefined;
  }

  #find(type: AuditFinding['type'], where: string, message: string): void {
    this.#findings.push({ type, where, message });
  }
}

function rangeOf(from: number, to: number): string {
  return `${spanOf(from, to)} ${from >= to ? 'is' : 'are'}`;
}

function spanOf(from: number, to: number): string {
  return from >= to ? `record ${from}` : `records ${from} to ${to}`;
}

function describeCut({ anchored, found }: { anchored: number; found: number }): string {
  return found < anchored
    ? `${rangeOf(found + 1, anchored)} cut off before this host started`
    : `record ${anchored} was replaced before this host started`;
}
